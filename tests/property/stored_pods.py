"""What the API server has stored, a watch that lags behind it, and what becomes of pods once they are let in."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from core import names
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger


class LateWatch(RuleBasedStateMachine):
    """What is stored, and `ledger`, that of a controller which goes by a watch that lags behind."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Pod] = {}
        self.unseen: list[str] = []

    def store(self, pod: Pod) -> None:
        self.stored[pod.uid] = replace(pod, resource_version=str(int(pod.resource_version or 0) + 1))
        self.unseen.append(pod.uid)

    def show(self, count: int) -> None:
        """The watch shows the first of what happened."""
        for uid in self.unseen[:count]:
            if uid in self.stored:
                self.ledger.put_pod(self.stored[uid])
            else:
                self.ledger.drop_pod(uid)
        del self.unseen[:count]


class OnePlanner(LateWatch):
    """A controller of one queue, `q`, whose writes the API refuses at times, and that is killed."""

    planner: Planner

    def start(self) -> None:
        """A controller that knows nothing but what it lists."""
        raise NotImplementedError

    @rule(shown=st.integers(1, 8))
    def watch(self, shown: int) -> None:
        """The watch shows a prefix of what happened."""
        self.show(shown)

    @rule(data=st.data())
    def quota_pass(self, data: st.DataObject) -> None:
        """One pass; each of its writes goes through or is refused."""
        self.decide(lambda: data.draw(st.booleans()))

    @rule(data=st.data())
    def killed_in_a_pass(self, data: st.DataObject) -> None:
        """One pass of which only some writes go out before the controller is killed."""
        self.decide(lambda: data.draw(st.booleans()), forget=False)
        self.start()

    def decide(self, accepted: Callable[[], bool], *, forget: bool = True) -> bool:
        """Those beyond what their group must have are written last, and only when all others of it were stored."""
        lifts = [decision for decision in self.planner.decide("q") if isinstance(decision, Lift)]
        lacking = set[str]()
        for lift in sorted(lifts, key=lambda lift: lift.beyond):
            stored = self.stored.get(lift.pod.uid)
            fresh = stored is not None and stored.resource_version == lift.pod.resource_version
            waits = lift.beyond and lift.pod.group_key in lacking
            if stored is not None and fresh and not waits and accepted():
                self.store(replace(stored, gates=(), annotations={**stored.annotations, **lift.records}))
                continue
            lacking.add(lift.pod.group_key)
            if forget:
                self.ledger.forget(lift.pod.uid)
        return bool(lifts)


class StoredPods(LateWatch):
    """Node `b` carries the card B, node `a` the card A."""

    def __init__(self) -> None:
        super().__init__()
        self.serial = 0

    @rule(data=st.data(), how=st.sampled_from(("bind", "finish", "terminate", "vanish")))
    def move_on(self, data: st.DataObject, how: str) -> None:
        running = sorted(uid for uid, pod in self.stored.items() if not pod.gated)
        if not running:
            return
        pod = self.stored[data.draw(st.sampled_from(running))]
        match how:
            case "bind" if pod.terminal:
                return
            case "bind":
                record = pod.annotations.get(names.ASSIGNED_ANNOTATION, "")
                self.store(replace(pod, node_name="b" if '"B"' in record else "a", phase="Running"))
            case "finish":
                self.store(replace(pod, phase="Succeeded"))
            case "terminate":
                self.store(replace(pod, deleting=True))
            case _:
                del self.stored[pod.uid]
                self.unseen.append(pod.uid)
