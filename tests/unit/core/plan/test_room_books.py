"""What it costs to keep up with the pods that are lifted and about to take mGPU shares: what changed, not what exists."""

from collections import UserDict
from collections.abc import Iterator
from typing import Any

import pytest

from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.objects import Pod
from core.plan import room as room_module
from core.plan.admitted import AdmittedNodes
from core.plan.changed_shares import ChangedShares
from core.plan.homeless import Homeless, Ranked
from core.plan.room import ShareRoom
from core.plan.wish import Wish
from core.queues import journal
from core.queues.journal import Journal
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.core.plan.stepping import stepped

PER_NODE = 8


class Looked(UserDict[Any, Any]):
    """Counts how many of its entries were looked at."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        self.looks += 1
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)

    def __iter__(self) -> Iterator[Any]:
        self.looks += len(self)
        return super().__iter__()


def share(name: str) -> PodBuilder:
    return a_pod(name).mgpu(core=10, memory=100)


class Cluster:
    """Nodes with as many pods on their way to them as they take, or led nowhere and without room."""

    def __init__(self, nodes: int, *, led: bool = True) -> None:
        self.ledger = Ledger(Settings())
        self.ledger.put_queue(a_queue("default").view())
        self.ledger.put_node(a_node("free").mgpu(1, memory=16384).view())
        for n in range(nodes):
            self.ledger.put_node(a_node(f"m{n}").mgpu(1, memory=16384).view())
            for each in range(PER_NODE):
                self.put(
                    share(f"p{n}-{each}").led_to(f"m{n}") if led else a_pod(f"p{n}-{each}").mgpu(core=200)
                )
        self.reserved = Looked(self.ledger.reserved_shares)
        counting: Any = self.ledger._entries
        counting.shares = self.reserved
        self.room = ShareRoom(self.ledger, AdmittedNodes(self.ledger))
        self.expected = Looked()
        room: Any = self.room
        room._nodes.expected = self.expected
        room._shares = ChangedShares(self.ledger, (self.expected, room._stranded, room._homeless))

    def put(self, pod: PodBuilder) -> None:
        view = pod.view()
        self.ledger.put_pod(view.ungated(view.annotations))

    def asked(self) -> int:
        """How many lifted pods are looked at for one question."""
        before = self.reserved.looks + self.expected.looks
        pod = share("asks").view()
        ask = mgpu_ask(pod)
        assert isinstance(ask, MgpuAsk)
        assert stepped(self.room.shortfall(pod, ask, "default"), lambda: None) is None
        return self.reserved.looks + self.expected.looks - before


def bind(cluster: Cluster) -> None:
    cluster.ledger.put_pod(share("p0-0").led_to("m0").bound_to("m0").view())


def lift(cluster: Cluster) -> None:
    cluster.put(share("late").led_to("free"))


def end(cluster: Cluster) -> None:
    cluster.ledger.drop_pod("uid-ml-p0-1")


@pytest.mark.parametrize("happens", [bind, lift, end])
def test_an_event_costs_a_look_at_its_own_node(happens: Any) -> None:
    looks = []
    for nodes in (5, 100):
        cluster = Cluster(nodes)
        assert cluster.asked() > nodes * PER_NODE, "a new room meets all of them"
        assert cluster.asked() == 0
        happens(cluster)
        looks.append(cluster.asked())
    few, many = looks
    assert few == many <= 6 * PER_NODE


def test_those_that_fit_nowhere_cost_one_look_for_all_of_one_wish() -> None:
    cluster = Cluster(50, led=False)
    cluster.asked()
    bind(cluster)
    assert cluster.asked() <= 10


def test_a_new_room_meets_those_that_are_lifted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "_NOTICED_IN_A_STEP", 20)
    cluster = Cluster(100)
    most, last = 0, cluster.reserved.looks + cluster.expected.looks
    pod = share("asks").view()
    ask = mgpu_ask(pod)
    assert isinstance(ask, MgpuAsk)

    def paused() -> None:
        nonlocal most, last
        looks = cluster.reserved.looks + cluster.expected.looks
        most, last = max(most, looks - last), looks

    stepped(cluster.room.shortfall(pod, ask, "default"), paused)
    assert most <= 20 * 3 + PER_NODE


def test_more_changes_than_the_ledger_remembers_are_found_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "_KEPT", 3)
    cluster = Cluster(4)
    cluster.asked()
    for n in range(4):
        for each in range(PER_NODE):
            cluster.ledger.drop_pod(f"uid-ml-p{n}-{each}")
    cluster.asked()
    assert not cluster.expected
    assert not cluster.room._stranded


def test_a_journal_tells_each_change_once_the_last_one_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_KEPT", 3)
    told = Journal[str]()
    for key in "abab":
        told.note(key)
    assert told.since(0) == ["b", "a"]
    assert told.since(3) == ["b"]
    assert told.since(4) == []
    told.note("c")
    assert told.since(2) == ["c", "b", "a"]
    told.note("d")
    assert told.since(4) == ["d", "c"]
    assert told.since(3) == ["d", "c", "b"]
    assert told.since(2) is None, "that a has changed is forgotten"


def rank(number: int, *, led: bool = False) -> tuple[bool, tuple[int, int, str]]:
    return not led, (0, number, "")


def test_a_line_gives_its_first_whoever_has_left() -> None:
    line = Ranked()
    for number in (3, 1, 2):
        line.put(("pod", str(number)), rank(number))
    line.put(("pod", "9"), rank(9, led=True))
    assert line.first()[1] == ("pod", "9")
    line.drop(("pod", "9"))
    line.drop(("pod", "9"))
    line.put(("pod", "1"), rank(7))
    assert line.first()[1] == ("pod", "2")
    line.drop(("pod", "2"))
    assert [line.first()[1], len(line)] == [("pod", "3"), 2]


def test_a_line_keeps_little_of_those_who_have_left() -> None:
    line = Ranked()
    for number in range(1000):
        line.put(("pod", str(number)), rank(number))
        if number >= 3:
            line.drop(("pod", str(number)))
    assert len(line._heap) <= 2 * len(line) + 9


def test_of_those_that_wait_for_the_same_the_next_one_is_tried_after_one_has_found_room() -> None:
    ledger, homeless = Ledger(Settings()), Homeless()
    keys, wishes = {}, set[Wish]()
    for number in range(3):
        pod: Pod = share(f"p{number}").created(f"2024-01-01T00:00:0{number}Z").view()
        ledger.put_pod(pod.ungated({}))
        entry = ledger.entry(pod.uid)
        assert entry is not None
        assert entry.demand.mgpu is not None
        wish = Wish.of(entry.pod, entry.demand.mgpu)
        wishes.add(wish)
        homeless.put(entry)
        homeless.wait(entry, wish)
        keys[number] = entry.share_key
    assert not homeless
    homeless.retry()
    assert homeless.next() == keys[0]
    homeless.done(keys[0])
    assert not homeless
    homeless.drop(keys[1])
    homeless.retry_wish(*wishes)
    assert homeless.next() == keys[2]
    homeless.done(keys[2])
    homeless.retry()
    assert not homeless
    assert [*homeless] == []
