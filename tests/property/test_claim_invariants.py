"""Claims in the controller's books and decisions: the same machine as for cards, with claims, templates and parents.

Claims, templates and DeviceClasses are seen at once, pods late.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from core import names
from core.dra.amounts import DeviceKey
from core.hierarchy import chain_of
from core.objects import Claim, ClaimTemplate, DeviceClass, Pod
from core.plan.decision import Lift
from core.queues.ledger import Ledger
from tests.builders import a_group, a_pod, a_queue
from tests.builders.claims import a_claim, a_template, a_way
from tests.builders.pods import PodBuilder
from tests.property.test_controller_invariants import QUEUES, Controller, queues

CLAIMS = ("c1", "c2")
TEMPLATES = ("t1", "t2")
ABOVE = ("org", "root")
CLASSES = ("gpu", "nic")
SERVED = ("example.com/a", "example.com/b")

counts = st.integers(0, 3)
quotas = st.none() | st.builds(
    lambda count, capacity: {"capability": {"gpu": {"count": count, "capacity": capacity}}},
    st.integers(0, 4),
    st.dictionaries(st.just("m"), st.integers(0, 6)),
)
references = st.lists(st.sampled_from((*CLAIMS, *TEMPLATES)), min_size=1, max_size=2)


class WithClaims(Controller):
    """Queues below `org`, and pods with claims beside those with cards."""

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.templates: dict[str, ClaimTemplate] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.away: dict[str, str] = {}
        """Resource -> the class that served it last, while none does and its grace lasts."""
        super().__init__()

    def listed(self, pods: Collection[Pod] | None = None) -> Ledger:
        ledger = super().listed(pods)
        for resource, last in self.away.items():
            ledger.put_class(DeviceClass(last, extended=resource))
            ledger.drop_class(last)
        for device_class in self.classes.values():
            ledger.put_class(device_class)
        for resource in ledger.devices.book.classes.orphaned.keys() - self.away.keys():
            ledger.release_resource(resource)
        assert ledger.devices.book.classes.orphaned == self.away
        for claim in self.claims.values():
            ledger.devices.put_claim(claim)
        for template in self.templates.values():
            ledger.devices.put_template(template)
        return ledger

    @rule()
    def restart(self) -> None:
        """Of a class that is away nobody knows who begins anew."""
        self.away.clear()
        super().restart()

    @initialize()
    def devices(self) -> None:
        """Enough to begin with that something is lifted."""
        self.set_device_quota("org", None, 3)
        for queue in QUEUES:
            self.put_queue(queue, {"capability": {"gpu": {"count": 2}}}, "org")
        self.put_claim("c1", 1, False)
        self.put_template("t1", 1)
        self.put_class("gpu", SERVED[0], 0)

    # -- what users, drivers and admins do -------------------------------------------------------------------

    def with_claims(self, pod: PodBuilder, references: list[str]) -> PodBuilder:
        for number, reference in enumerate(references):
            kind = {"template" if reference in TEMPLATES else "name": reference}
            pod = pod.claim(f"e{number}", **kind)
        return pod

    @rule(queue=queues, wanted=references, cards=st.integers(0, 1))
    def create_pod_with_claims(self, queue: str, wanted: list[str], cards: int) -> None:
        pod = self.with_claims(a_pod(self.name()), wanted).in_queue(queue).gated()
        self.store((pod.gpu(1).card("A") if cards else pod).view())

    @rule(queue=queues, resource=st.sampled_from(SERVED), count=st.integers(1, 2))
    def create_pod_with_an_extended_resource(self, queue: str, resource: str, count: int) -> None:
        self.store(a_pod(self.name()).limit(resource, count).in_queue(queue).gated().view())

    @rule(queue=queues, minimum=st.integers(0, 3), wanted=st.lists(references, min_size=1, max_size=3))
    def create_group_with_claims(self, queue: str, minimum: int, wanted: list[list[str]]) -> None:
        name = f"g{len(self.groups)}"
        self.groups[name] = a_group(name).in_queue(queue).min_member(minimum).view()
        self.ledger.put_group(self.groups[name])
        for each in wanted:
            self.store(self.with_claims(a_pod(self.name()), each).in_group(name).gated().view())

    @rule(queue=queues, wanted=references, bound=st.booleans())
    def run_past_the_gate(self, queue: str, wanted: list[str], bound: bool) -> None:
        """As while the webhook was away: nobody keeps such a pod back, and it is charged all the same."""
        pod = self.with_claims(a_pod(self.name()), wanted).in_queue(queue)
        self.store((pod.bound_to("a1") if bound else pod).view(), seen=True)

    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        """A pod goes for good, and the watch shows all there is to see."""
        if self.stored:
            uid = data.draw(st.sampled_from(sorted(self.stored)))
            del self.stored[uid]
            self.unseen.append(uid)
        self.watch(len(self.unseen))

    @rule(name=st.sampled_from(CLAIMS), count=counts, chosen=st.booleans())
    def put_claim(self, name: str, count: int, chosen: bool) -> None:
        built = a_claim(name).exactly("r", "gpu", count=count, capacity={"m": 1})
        built = built.first_available(
            "s", a_way("gpu", name="x", count=2), a_way("nic", name="y", count=count)
        )
        self.claims[name] = (built.allocated("r", "s/y") if chosen else built).view()
        self.ledger.devices.put_claim(self.claims[name])

    @rule(name=st.sampled_from(CLAIMS))
    def drop_claim(self, name: str) -> None:
        self.claims.pop(name, None)
        self.ledger.devices.drop_claim(f"ml/{name}")

    @rule(name=st.sampled_from(TEMPLATES), count=counts)
    def put_template(self, name: str, count: int) -> None:
        self.templates[name] = a_template(name).exactly("r", "gpu", count=count).view()
        self.ledger.devices.put_template(self.templates[name])

    @rule(name=st.sampled_from(TEMPLATES))
    def drop_template(self, name: str) -> None:
        self.templates.pop(name, None)
        self.ledger.devices.drop_template(f"ml/{name}")

    @rule(name=st.sampled_from(CLASSES), resource=st.sampled_from(("", *SERVED)), created=st.integers(0, 2))
    def put_class(self, name: str, resource: str, created: int) -> None:
        with self.classes_change():
            self.classes[name] = DeviceClass(name, created, resource)
        self.ledger.put_class(self.classes[name])

    @rule(name=st.sampled_from(CLASSES))
    def drop_class(self, name: str) -> None:
        with self.classes_change():
            self.classes.pop(name, None)
        self.ledger.drop_class(name)

    @rule()
    def wait_for_classes_until_their_grace_is_over(self) -> None:
        self.away.clear()
        for resource in tuple(self.ledger.devices.book.classes.orphaned):
            self.ledger.release_resource(resource)

    @contextmanager
    def classes_change(self) -> Iterator[None]:
        before = self.served()
        yield
        now = self.serving()
        self.away = {resource: last for resource, last in before.items() if resource not in now}

    def served(self) -> dict[str, str]:
        """The class that is charged for each resource."""
        return {**self.away, **self.serving()}

    def serving(self) -> dict[str, str]:
        """The class that serves each resource, of those that exist: the newest, then the first by name."""
        found = {f"{names.DEVICE_CLASS_RESOURCE_PREFIX}{name}": name for name in self.classes}
        for each in sorted(self.classes.values(), key=lambda each: (-each.created, each.name), reverse=True):
            found |= {each.extended: each.name} if each.extended else {}
        return found

    @rule(queue=queues, quota=quotas, parent=st.sampled_from(("", "org", "gone", *QUEUES)))
    def put_queue(self, queue: str, quota: dict[str, Any] | None, parent: str) -> None:
        changed = a_queue(queue).cards({"A": 2, "B": 1}).child_of(parent)
        self.queues[queue] = (changed if quota is None else changed.devices(quota)).view()
        self.ledger.put_queue(self.queues[queue])

    @rule(queue=st.sampled_from(ABOVE), quota=quotas, count=st.integers(0, 4))
    def set_device_quota(self, queue: str, quota: dict[str, Any] | None, count: int) -> None:
        wanted = quota or {"capability": {"gpu": {"count": count}}}
        self.queues[queue] = a_queue(queue).devices(wanted).view()
        self.ledger.put_queue(self.queues[queue])

    @rule(queue=st.sampled_from(ABOVE))
    def drop_above(self, queue: str) -> None:
        self.queues.pop(queue, None)
        self.ledger.drop_queue(queue)

    # -- what always holds -----------------------------------------------------------------------------------

    def decide(self, accepted: Any) -> bool:
        """Notes what was in use before: that may be more than a quota that was cut since."""
        used = self.known().devices.book.accounts.used
        self.before = {name: dict(used(name)) for name in (*QUEUES, *ABOVE)}
        return super().decide(accepted)

    def known(self) -> Ledger:
        """The books, with everything in them that the controller has seen."""
        return self.ledger

    def is_within_quota(self, lift: Lift) -> None:
        devices = bool(lift.pod.claims) or any(each in self.served() for each in lift.pod.extended)
        if lift.pod.card_name or (devices and lift.queue in self.queues):
            super().is_within_quota(lift)
        if not devices:
            return
        truth = self.listed().devices.book
        chain = chain_of(lift.queue, lambda name: self.queues[name].parent if name in self.queues else None)
        assert not chain.problem
        for name in chain.queues:
            limits = truth.limits[name].bounds if name in truth.limits else {}
            for key, limit in limits.items():
                used = truth.accounts.used(name).get(key, 0)
                assert used <= max(limit, self.before.get(name, {}).get(key, 0)), (name, key)

    @precondition(lambda self: not self.unseen)
    @invariant()
    def no_claim_leaks(self) -> None:
        truth = self.listed().devices.book
        for name in (*QUEUES, *ABOVE, "gone", "default"):
            ours = self.ledger.devices.book
            assert sums(ours.accounts.allocated(name)) == sums(truth.accounts.allocated(name)), name
            assert sums(ours.accounts.reserved(name)) == sums(truth.accounts.reserved(name)), name
            assert sums(ours.accounts.waiting(name)) == sums(truth.accounts.waiting(name)), name


def sums(found: Any) -> dict[DeviceKey, int]:
    return dict(found)


TestWithClaims = WithClaims.TestCase
