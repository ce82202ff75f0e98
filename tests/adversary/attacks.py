"""Every way to create or change a pod beyond what its queue allows, tried one after the other in a cluster in memory.

The queue `own` has quota for one pod, which runs or is about to; what the attack is after is a second one, or that the first
is charged to nobody any more. In the end an honest pod `b` asks for the same, where the attack has not made it already.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core import names
from core.objects import Pod
from core.settings import Settings
from tests.adversary import ways
from tests.adversary.apiserver import ADMIN, HOME, TENANT, RefusedError
from tests.adversary.ways import CLOSED, OTHER, OWN
from tests.adversary.world import CLUSTER, World
from tests.builders import a_group, a_job
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import PodBuilder

QUEUE, GROUP, JOB_QUEUE = (
    names.QUEUE_NAME_ANNOTATION,
    names.GROUP_NAME_ANNOTATION,
    names.JOB_QUEUE_ANNOTATION,
)
NOBODY: Final = "nobody"
"""A scheduler that we gate no pod for."""
YEAR_S: Final = 31_536_000
STATUS_WRITER: Final = "status-writer"
"""An account that may write the status of pods, which no tenant may."""
FORGED: Final = {
    names.CHARGED_QUEUE_ANNOTATION: OTHER,
    names.ASSIGNED_ANNOTATION: '{"A":0}',
    names.CLAIMS_ANNOTATION: "x",
}


@dataclass
class Trial:
    """One attack in one way: what was refused, and what there is in the end."""

    way: str
    settings: Settings | None = None
    """Those of the way, unless others are named."""
    refused: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.world: World = ways.world(self.settings or ways.WAYS[self.way].settings)

    def attempt(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Whatever comes of it."""
        self.refused |= _refusal(call, *args, **kwargs)

    def create(self, built: PodBuilder) -> None:
        self.attempt(self.world.create, built.build())

    def pod(self, name: str, queue: str = OWN) -> PodBuilder:
        return ways.make(self.world, self.way, name, queue)

    def first(self) -> None:
        """The one pod that there is quota for runs."""
        self.create(self.pod("a"))
        self.world.settle()

    def second(self) -> None:
        """Another one asks for the same, as anybody may."""
        self.create(self.pod("b"))
        self.world.settle()

    def edit(
        self, name: str, entries: Mapping[str, str | None], user: str = TENANT, *, by_status: bool = False
    ) -> None:
        """One annotation after the other, so that each is judged by itself."""
        write = self.world.annotate_by_status if by_status else self.world.annotate
        for key, value in entries.items():
            self.attempt(write, name, user, **{key: value})

    def outcome(self) -> str:
        """What the client was refused, what became of `b`, what `own` is charged with and what runs, in pods."""
        way, world = ways.WAYS[self.way], self.world
        world.settle()
        charged = world.charged(OWN, way.key) / way.amount
        found = [f"refused {' '.join(sorted(self.refused))}"] if self.refused else []
        using = [view for view in world.running() if world.used_by(view)[way.key]]
        found += [self._state("b"), f"charged {charged:g}", f"run {len(using)}"]
        elsewhere = {name: world.charged(name, way.key) for name in (OTHER, CLOSED)}
        found += [f"{name} {amount / way.amount:g}" for name, amount in elsewhere.items() if amount]
        return ", ".join(found)

    def _state(self, name: str) -> str:
        if self.world.find("Pod", name) is None:
            return f"no {name}"
        view: Pod = self.world.view(name)
        if view.gated:
            hold = self.world.held.get(name)
            reason = hold.why.code if hold is not None else "unheard"
            return f"{name} waits" + ("" if reason == ways.WAYS[self.way].short else f" {reason}")
        if not view.bound:
            return f"{name} unbound"
        return f"{name} {view.phase.lower()}"


def _refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> set[str]:
    try:
        call(*args, **kwargs)
    except RefusedError as error:
        return {*error.codes}
    return set()


def create(trial: Trial) -> None:
    trial.first()
    trial.second()


def update_while_gated(trial: Trial) -> None:
    """The gate, the card, the records and the label of the one that waits."""
    trial.first()
    trial.second()
    if trial.world.find("Pod", "b") is None:
        return
    trial.attempt(trial.world.change, "Pod", "b", "spec", "schedulingGates", value=[])
    trial.edit("b", {names.CARD_NAME_ANNOTATION: None, **FORGED})
    refused = _refusal(trial.world.label, "b", **{names.MANAGED_LABEL: None})
    trial.refused |= {f"label:{code}" for code in refused}


def _rewrite(trial: Trial, name: str, user: str = TENANT, *, by_status: bool = False) -> None:
    """All that a pod was counted by."""
    if trial.world.find("Pod", name) is None:
        return
    moves: dict[str, str | None] = {QUEUE: OTHER, JOB_QUEUE: OTHER, names.CARD_NAME_ANNOTATION: "B"}
    removals = dict.fromkeys((*FORGED, names.CARD_NAME_ANNOTATION))
    # A group may be named later, as Volcano does; it moves nothing any more.
    trial.attempt(trial.world.create, a_group("late").in_queue(OTHER).build())
    for entries in ({**moves, **FORGED}, removals, {names.MGPU_MULTIPLE_ANNOTATION: "2", GROUP: "late"}):
        trial.edit(name, entries, user, by_status=by_status)


def update_after_lift(trial: Trial) -> None:
    trial.create(trial.pod("a"))
    trial.world.control()
    _rewrite(trial, "a")
    trial.second()


def update_after_bind(trial: Trial) -> None:
    trial.first()
    _rewrite(trial, "a")
    trial.second()


def owner_reference(trial: Trial) -> None:
    """The running pod is given to a Job of another queue."""
    trial.first()
    stored = trial.world.create(a_job("j").in_queue(OTHER).build())
    owner = {"apiVersion": stored["apiVersion"], "kind": "Job", "name": "j", "uid": stored["metadata"]["uid"]}
    references = [{**owner, "controller": True}]
    if trial.world.find("Pod", "a") is not None:
        trial.attempt(trial.world.change, "Pod", "a", "metadata", "ownerReferences", value=references)
    trial.second()


def podgroup(trial: Trial) -> None:
    """The group that named the queue is moved, deleted, and made anew for another."""
    trial.world.create(a_group("g").in_queue(OWN).build())
    trial.create(trial.pod("a", "").in_group("g"))
    trial.world.settle()
    for queue in (OTHER, "nowhere", CLOSED):
        trial.attempt(trial.world.change, "PodGroup", "g", "spec", "queue", value=queue)
    trial.world.delete("PodGroup", "g")
    trial.world.create(a_group("g").in_queue(OTHER).build())
    trial.second()


def job(trial: Trial) -> None:
    """The Job that named the queue is moved and deleted."""
    stored = trial.world.create(a_job("j").in_queue(OWN).build())
    built = trial.pod("a", "").owned_by(
        "Job", "j", api_version=stored["apiVersion"], uid=stored["metadata"]["uid"]
    )
    trial.create(built.annotation(JOB_QUEUE, OWN))
    trial.world.settle()
    trial.attempt(trial.world.change, "Job", "j", "spec", "queue", value=OTHER)
    trial.world.delete("Job", "j")
    trial.second()


def namespace_annotation(trial: Trial) -> None:
    """The namespace that named the queue names another: not by the tenant."""
    trial.world.annotate(HOME, ADMIN, "Namespace", **{QUEUE: OWN})
    trial.create(trial.pod("a", ""))
    trial.world.settle()
    trial.attempt(trial.world.annotate, HOME, TENANT, "Namespace", **{QUEUE: OTHER})
    trial.world.annotate(HOME, ADMIN, "Namespace", **{QUEUE: OTHER})
    trial.second()


def status(trial: Trial) -> None:
    """A status update carries annotations and labels: not for the tenant, and for whoever may it is judged alike."""
    trial.first()
    if trial.world.find("Pod", "a") is not None:
        trial.attempt(trial.world.annotate_by_status, "a", **FORGED)
    _rewrite(trial, "a", STATUS_WRITER, by_status=True)
    trial.second()


def binding_by_hand(trial: Trial) -> None:
    """Of one that was let in, of one that waits, of one that nobody gates: with records that the Binding brings along."""
    trial.world.laid_over |= FORGED
    trial.first()
    trial.create(trial.pod("b").scheduler(NOBODY))
    trial.create(trial.pod("c"))
    made = [name for name in ("b", "c") if trial.world.find("Pod", name) is not None]
    for user, name in itertools.product((TENANT, CLUSTER), made):
        for node in trial.world.all("Node"):
            trial.attempt(trial.world.bind, name, node["metadata"]["name"], user, FORGED)


def node_name(trial: Trial) -> None:
    """Past every scheduler, and so past every Binding; a scheduler that we gate no pod for makes no difference."""
    trial.first()
    trial.create(trial.pod("b").put("spec", "nodeName", value=_busy(trial)))
    trial.create(trial.pod("c").put("spec", "nodeName", value=_busy(trial)).scheduler(NOBODY))


def image_of_static_pod(trial: Trial) -> None:
    """Pods of that kind show what runs anyway, and only kubelets make them: with a node, and without a scheduler."""
    trial.first()
    trial.create(trial.pod("b").put("spec", "nodeName", value=_busy(trial)).mirror())
    trial.create(trial.pod("c", CLOSED).put("spec", "nodeName", value="gone").mirror())


def _busy(trial: Trial) -> str:
    """Where the first one runs."""
    return next((view.node_name for view in trial.world.running()), "a")


def other_scheduler(trial: Trial) -> None:
    trial.first()
    trial.create(trial.pod("b").scheduler(NOBODY))


def long_deletion(trial: Trial) -> None:
    """A pod that is being deleted for a year."""
    trial.create(trial.pod("a").put("spec", "terminationGracePeriodSeconds", value=YEAR_S))
    trial.world.settle()
    trial.attempt(trial.world.delete, "Pod", "a")
    trial.second()


def forced_deletion(trial: Trial) -> None:
    """By force, of a pod whose kubelet would give it a year: before and after a deletion that leaves it that."""
    trial.create(trial.pod("a").put("spec", "terminationGracePeriodSeconds", value=YEAR_S))
    trial.world.settle()
    for grace in (0, None, 0):
        trial.attempt(trial.world.delete, "Pod", "a", grace_s=grace)
    trial.second()


def claims_made_anew(trial: Trial) -> None:
    """Between lift and bind, with two devices instead of one: the claim, and the template before a claim is made of it."""
    trial.create(trial.pod("b"))
    trial.world.control()
    for kind, name, built in (
        ("ResourceClaim", "of-b", a_claim("of-b").exactly("r", ways.CLASS, count=2)),
        ("ResourceClaimTemplate", "each", a_template("each").exactly("r", ways.CLASS, count=2)),
    ):
        if trial.world.find(kind, name) is not None:
            trial.attempt(trial.world.delete, kind, name)
            trial.attempt(trial.world.create, built.build())


def claims_disowned(trial: Trial) -> None:
    """The claims of the running pod belong to nobody any more, and the template is gone."""
    trial.first()
    for raw in trial.world.all("ResourceClaim"):
        name = raw["metadata"]["name"]
        trial.attempt(trial.world.change, "ResourceClaim", name, "metadata", "ownerReferences", value=[])
    _second_of_another_template(trial)


def claims_taken_away(trial: Trial) -> None:
    """They are deleted and their finalizers patched away; the pod runs on with devices that no claim shows any more."""
    trial.first()
    for raw in trial.world.all("ResourceClaim"):
        trial.attempt(trial.world.delete, "ResourceClaim", raw["metadata"]["name"])
        trial.world.gone(raw)
    _second_of_another_template(trial)


def claims_made_larger(trial: Trial) -> None:
    """The same, and claims of their names for all there is: whoever shares the queue is not to pay for what nobody has."""
    trial.first()
    for raw in trial.world.all("ResourceClaim"):
        name = raw["metadata"]["name"]
        trial.attempt(trial.world.delete, "ResourceClaim", name)
        trial.world.gone(raw)
        larger = a_claim(name).exactly("r", ways.WAYS[trial.way].key.partition("/")[2], count=ways.MANY)
        trial.attempt(trial.world.create, larger.build())
    trial.second()


def _second_of_another_template(trial: Trial) -> None:
    trial.world.delete("ResourceClaimTemplate", "each")
    trial.world.create(a_template("another").exactly("r", ways.CLASS).build())
    built = trial.pod("b")
    if trial.way == "template":
        entry = {"name": "dev", "resourceClaimTemplateName": "another"}
        built = built.put("spec", "resourceClaims", value=[entry])
    trial.create(built)
    trial.world.settle()


def foreign_queue(trial: Trial) -> None:
    """By name, by a group, by a Job that does not exist: a queue that does not admit the namespace."""
    trial.first()
    trial.world.create(a_group("g").in_queue(CLOSED).build())
    trial.create(trial.pod("named", CLOSED))
    trial.create(trial.pod("b", "").in_group("g"))
    trial.create(trial.pod("bound", "").in_group("g").put("spec", "nodeName", value=_busy(trial)))
    copied = trial.pod("copied", "").owned_by("Job", "gone", api_version="batch.volcano.sh/v1alpha1")
    trial.create(copied.annotation(JOB_QUEUE, CLOSED))


def no_webhook(trial: Trial) -> None:
    trial.first()
    trial.world.webhook_up = False
    trial.create(trial.pod("b"))
    _rewrite(trial, "a")


def no_controller(trial: Trial) -> None:
    """What is created meanwhile waits, and is judged when somebody leads again."""
    trial.first()
    trial.world.stop_controller()
    trial.create(trial.pod("b"))
    if trial.world.find("Pod", "b") is not None:
        trial.attempt(trial.world.change, "Pod", "b", "spec", "schedulingGates", value=[])
        trial.attempt(trial.world.bind, "b", _busy(trial), CLUSTER)
    _rewrite(trial, "a")
    trial.world.settle()
    trial.world.start_controller()


ATTACKS: Final[dict[str, Callable[[Trial], None]]] = {
    "create": create,
    "update while gated": update_while_gated,
    "update after lift": update_after_lift,
    "update after bind": update_after_bind,
    "owner reference": owner_reference,
    "PodGroup": podgroup,
    "Job": job,
    "namespace annotation": namespace_annotation,
    "status": status,
    "binding by hand": binding_by_hand,
    "nodeName": node_name,
    "image of a static pod": image_of_static_pod,
    "other scheduler": other_scheduler,
    "long deletion": long_deletion,
    "forced deletion": forced_deletion,
    "claims made anew": claims_made_anew,
    "claims disowned": claims_disowned,
    "claims taken away": claims_taken_away,
    "claims made larger": claims_made_larger,
    "foreign queue": foreign_queue,
    "no webhook": no_webhook,
    "no controller": no_controller,
}


def outcome(attack: str, way: str) -> str:
    """What comes of an attack in one way of using a card."""
    trial = Trial(way)
    ATTACKS[attack](trial)
    return trial.outcome()
