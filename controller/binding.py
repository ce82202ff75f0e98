"""The binding hook: a pod gets the record of its cards in the very write that gives it its node, or it gets neither."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from controller.caches import Caches
from controller.grants import HOOK_TIMEOUT_S, Grants, settled_after
from controller.inheritance import Inheritance
from controller.metrics import Metrics
from controller.precedence import Precedence
from core import reasons
from core.admission.request import AdmissionRequest, Decision
from core.binding.binder import Binder
from core.binding.review import Target, grant, leaderless, obstacle, refuse, target_of, unasked
from core.crossquota.guest import keys
from core.mgpu.pieces import Pieces, SearchUnderWayError
from core.names import OWN_PREFIX
from core.objects import Pod, pod
from core.refusal import Refusal
from core.settings import Settings
from kube import errors
from kube.calls import Reader
from kube.lease import Term
from kube.resources import PODS

_LOG = logging.getLogger(__name__)

READ_TIMEOUT_S = 2.0

UNDER_WAY_ANNOTATION = OWN_PREFIX + "binds-under-way"
"""On a Lease that was given back: the UIDs of the pods whose bind was granted and may still be stored."""

_NAMED_MOST = 200

_OF_ITS_TIME = 0.25
"""How much of the hook's time may go by until what queues use is right. A standby gives the leader half of it for everything."""

_UNSETTLED = Refusal(
    reasons.BOOKS_UNSETTLED,
    "very many pods are being counted anew after a change; the scheduler will try again",
)
_UNDECIDED = Refusal(
    reasons.BOOKS_UNSETTLED,
    "room is being looked for on mGPU cards for very many binds at once; the scheduler will try again",
)

Answer = Callable[[AdmissionRequest], Awaitable[Decision]]


class BindingHook:
    """Answers reviews of Bindings. Grants are given only while `leading`; what needs none (Binder.certain) passes anyway.

    Everything between looking at the books and booking in them happens without an await, so two binds never see the
    same free card or quota; and nothing is granted by sums that are still to be settled. What was granted is kept until it is
    known whether it was stored, see Grants; `run` has to be running while grants are given. `on_refusal` is called with the pod,
    the node and the code of what is refused by the books.
    """

    def __init__(
        self,
        reader: Reader | None,
        caches: Caches,
        settings: Settings,
        metrics: Metrics,
        ask_leader: Answer | None = None,
        *,
        hook_timeout_s: float = HOOK_TIMEOUT_S,
        on_refusal: Callable[[Pod, str, str], None] = lambda _pod, _node, _reason: None,
    ) -> None:
        self._reader = reader
        self._caches = caches
        self._labels_kept = keys(settings.cross_quota.label_selector)
        self._binder = Binder(caches.ledger, caches.guests, settings, metrics.searches_cut_short.inc)
        caches.pods.subscribe(self._binder.observe)
        self._metrics = metrics
        self._nothing_to_decide = metrics.binds.labels("passed", "")
        self._on_refusal = on_refusal
        self._ask_leader = ask_leader or self._leaderless
        self._grants = Grants(self._look_up, self._binder, settled_after_s=settled_after(hook_timeout_s))
        caches.pods.subscribe(self._grants.observe)
        self._settled_after_s = settled_after(hook_timeout_s)
        self._patience_s = hook_timeout_s * _OF_ITS_TIME
        self._inheritance = Inheritance(self._binder, self._look_up)
        caches.pods.subscribe(self._inheritance.observe)
        self._precedence = Precedence()
        self._term: Term | None = None

    @property
    def leading(self) -> bool:
        """Whether grants are given here: between `start` and `stop`, while nobody else can lead."""
        return self._term is not None and self._term.valid()

    async def inherit(self, term: Term, since: float) -> None:
        """Takes over from a former leader, whose last grant was before that time of the loop; the pods are listed anew."""
        left = term.left.get(UNDER_WAY_ANNOTATION) if term.left is not None else None
        named = None if left is None else {*left.split(",")}
        await self._inheritance.take(self._caches.pods, named, since + self._settled_after_s)

    def start(self, term: Term) -> None:
        """Grants are given here from now on, as long as the term is valid."""
        self._term = term

    def stop(self) -> None:
        """No more grants are given here, and those that were are forgotten: the next leader lists anew.

        The term says what it leaves. Where none were given in it, nobody here knows which binds are under way.
        """
        if self._term is not None:
            self._term.leaving = self._under_way()
        self._term = None
        self._inheritance.drop_all()
        self._grants.take_back_all()

    async def run(self) -> None:
        """Finds out what became of the binds that the watch does not show, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._grants.run(), name="binds that were granted")
            tasks.create_task(self._inheritance.run(), name="binds that a former leader granted")

    def _under_way(self) -> Mapping[str, str]:
        """What the Lease says when it is given back: the binds that may be under way, unless they are too many to be named."""
        pods = self._grants.open | self._inheritance.open
        return {UNDER_WAY_ANNOTATION: ",".join(sorted(pods))} if len(pods) <= _NAMED_MOST else {}

    async def review(self, request: AdmissionRequest) -> Decision:
        """The answer to one Binding, the leader's where the pod is ours. Never raises for what the Binding holds."""
        return await self._review(request, self._ask_leader)

    async def review_here(self, request: AdmissionRequest) -> Decision:
        """The answer of this replica alone, for one that has been asked by another."""
        return await self._review(request, self._leaderless)

    async def _review(self, request: AdmissionRequest, elsewhere: Answer) -> Decision:
        target = target_of(request)
        known = self._caches.latest(target.key)
        if known is not None and target.uid in ("", known.uid) and self._binder.certain(known, target.node):
            return self._passed(target)
        with self._metrics.bind_seconds.time():
            until = asyncio.get_running_loop().time() + self._patience_s
            pieces = Pieces()
            try:
                while (decision := await self._review_ours(request, target, elsewhere, pieces)) is None:
                    if not await self._done_by(until, self._caches.sums_settled):
                        return self._refused(_UNSETTLED)
                    if not await self._done_by(until, lambda: self._search(target.node, pieces)):
                        return self._refused(_UNDECIDED)
            finally:
                self._precedence.end(target.node, pieces)
            return decision

    async def _search(self, node: str, pieces: Pieces) -> None:
        """Goes on with what an answer needs, unless another one is to be decided first.

        Every bind and lift to the node makes it another question. Who has been begun anew by them for a while is let do it.
        """
        if self._precedence.waits(node, pieces):
            await self._precedence.over(node)
            return
        if pieces.overtaken:
            self._precedence.claim(node, pieces)
        await self._caches.turns.finish(pieces.go_on(), whole=pieces.overtaken)

    async def _leaderless(self, _request: AdmissionRequest) -> Decision:
        return leaderless("this replica does not lead")

    async def _done_by(self, until: float, work: Callable[[], Awaitable[None]]) -> bool:
        """Does what a bind has to wait for, and no longer than until that time of the loop; whether it is done.

        A hook that answers too late is taken for one that is away, and then the bind may go through as it is.
        """
        if asyncio.get_running_loop().time() >= until:
            return False
        try:
            async with asyncio.timeout_at(until):
                await work()
        except TimeoutError:
            return False
        return True

    async def _review_ours(
        self, request: AdmissionRequest, target: Target, elsewhere: Answer, pieces: Pieces
    ) -> Decision | None:
        """The answer to a bind that is to be decided.

        None while the sums that decide about it are still to be settled, and while `pieces` are to be gone on with: it goes by what
        there is when it is given.
        """
        known = self._caches.latest(target.key)
        problem = obstacle(target, known)
        if problem is not None:
            # The cache may lag behind the scheduler's, which has just seen the pod come, or its gate go.
            try:
                known = await self._stored(target.namespace, target.name)
            except errors.KubeError as error:
                text = f"pod {target.key} cannot be read: {errors.describe(error)}"
                return self._refused(Refusal(reasons.API_UNAVAILABLE, text))
            problem = obstacle(target, known)
        if known is not None and self._binder.certain(known, target.node):
            return self._passed(target)
        if problem is not None:
            return self._refused(problem)
        assert known is not None, "a pod that does not exist is an obstacle"
        if self.leading and not self._binder.passes_unasked(known, target.node):
            ledger = self._caches.ledger
            if not ledger.sums_settled:
                return None
            if not ledger.devices.certain(known):
                return self._refused(_UNSETTLED)
            if known.asks_mgpu and self._precedence.waits(target.node, pieces):
                return None
        try:
            decision = self._decide(request, target, known, pieces) if self.leading else None
        except SearchUnderWayError:
            return None
        if decision is None:
            decision = await elsewhere(request)
        missing = unasked(decision)
        if missing is None:
            return decision
        if self._binder.passes_unasked(known, target.node):
            return self._passed(target, missing.code)
        return self._refused(missing)

    async def _look_up(self, granted: Pod) -> Pod | None:
        """The same of a pod that was granted its bind; the books have it from then on. Raises KubeError, or GARBAGE."""
        return await self._caches.look_up(granted, lambda pod: self._stored(pod.namespace, pod.name))

    async def _stored(self, namespace: str, name: str) -> Pod | None:
        """The pod as the API server has it now. Raises KubeError."""
        if self._reader is None:
            return self._caches.latest(f"{namespace}/{name}")
        try:
            raw = await self._reader.get(PODS, name, namespace, timeout_s=READ_TIMEOUT_S)
        except errors.NotFound:
            return None
        return pod.project(raw, labels_kept=self._labels_kept)

    def _decide(
        self, request: AdmissionRequest, target: Target, view: Pod, pieces: Pieces
    ) -> Decision | None:
        """The answer by the books as they are now; None when this replica has ceased to lead while it was found.

        Raises SearchUnderWayError where it takes long to be found, and has changed nothing then.
        """
        booked = self._caches.ledger.pod(view.uid)
        rival = self._inheritance.rival(view) if booked is None or not booked.bound else None
        if rival is not None:
            text = f"a bind of pod {rival.key} that the former leader allowed may still be stored; try again"
            return self._refused(Refusal(reasons.NO_LEADER, text))
        answer = pieces.begin(partial(self._answer, target, view, booked))
        if not self.leading:
            # The process may have been stopped for a while: somebody else may have given the same cards to another pod.
            return None
        if isinstance(answer, Refusal):
            if not request.dry_run:
                self._on_refusal(view, target.node, answer.code)
            return self._refused(answer)
        if not request.dry_run and (booked is None or not booked.bound or self._grants.stands(booked)):
            self._grants.put(self._binder.book(view, target.node, answer))
        return self._granted(target, answer)

    def _answer(self, target: Target, view: Pod, booked: Pod | None) -> Mapping[str, str] | Refusal:
        if booked is None or not booked.bound:
            return self._binder.decide(view, target.node)
        if booked.node_name == target.node or self._grants.stands(booked):
            # The scheduler or the API server asks again.
            return self._binder.decide_again(view, booked, target.node)
        # A bind that was granted may still be stored, however late and whatever the scheduler was told; its cards and
        # its quota stay taken until the outcome is known.
        text = f"a bind of pod {target.key} to node {booked.node_name} is under way"
        return Refusal(reasons.POD_ALREADY_BOUND, text)

    def _passed(self, target: Target, unasked: str = "") -> Decision:
        """Lets a bind through; `unasked` is why nobody could be asked about it."""
        passed = self._metrics.binds.labels("passed", unasked) if unasked else self._nothing_to_decide
        passed.inc()
        return grant(target, {})

    def _granted(self, target: Target, records: Mapping[str, str]) -> Decision:
        self._metrics.binds.labels("granted", "").inc()
        return grant(target, records)

    def _refused(self, why: Refusal) -> Decision:
        self._metrics.binds.labels("denied", why.code).inc()
        _LOG.info("bind refused", extra={"reason": why.code, "detail": why.message})
        return refuse(why)
