"""What the API server has stored, a watch that lags behind it, and what becomes of pods once they are let in."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from core import names
from core.objects import Pod
from core.queues.ledger import Ledger


class StoredPods(RuleBasedStateMachine):
    """Node `b` carries the card B, node `a` the card A; `ledger` is that of a controller which goes by the watch."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Pod] = {}
        self.unseen: list[str] = []
        self.serial = 0

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

    @rule(data=st.data(), how=st.sampled_from(("bind", "finish", "terminate", "vanish")))
    def move_on(self, data: st.DataObject, how: str) -> None:
        running = sorted(uid for uid, pod in self.stored.items() if not pod.gated)
        if not running:
            return
        pod = self.stored[data.draw(st.sampled_from(running))]
        match how:
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
