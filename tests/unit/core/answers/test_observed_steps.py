"""However much there is beside a pod, no step of finding out why it waits is longer for it. In calls, not in time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest

from core import reasons
from core.answers import holders, report
from core.answers.explain import MOST, Explanation, let_go_of_holders, observed
from core.objects import Pod
from core.plan import units
from core.plan.decision import Hold
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.stage import Stage
from core.steps import Steps, finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import NodeBuilder, QueueBuilder
from tests.builders.pods import PodBuilder
from tests.fakes.counted import longest_step

MARGIN = 1.3
"""The size of the last piece, and what a first one makes for all."""
FEW, MANY = 1_000, 4_000
ASKED = "uid-ml-asked"

Kind = Callable[[int], "Books"]


class Books:
    """Books in which one pod waits that is asked about, with the others that do."""

    def __init__(self, reason: str = reasons.INSUFFICIENT_SCALAR_QUOTA) -> None:
        self.ledger = Ledger(Settings())
        self.holds: Mapping[str, Hold] = {}
        self._why = Refusal(reason, "short")

    def having(
        self, queue: QueueBuilder, nodes: Iterable[NodeBuilder], pods: Iterable[Pod], asked: PodBuilder
    ) -> "Books":
        self.ledger.put_queue(queue.view())
        for node in nodes:
            self.ledger.put_node(node.view())
        for pod in (*pods, asked.view()):
            self.ledger.put_pod(pod)
        finish(self.ledger.settle())
        waiting = [entry.pod for entry in self.ledger.entries() if entry.stage is Stage.WAITING]
        self.holds = {pod.uid: Hold(pod, "q", self._why) for pod in waiting}
        return self

    def answer(self, into: list[Explanation]) -> Steps[None]:
        found = yield from observed(self.ledger, ASKED, self.holds)
        assert found is not None
        into.append(found)

    def answered(self) -> Explanation:
        found: list[Explanation] = []
        finish(self.answer(found))
        return found[0]


def many(pod: PodBuilder, number: int) -> list[Pod]:
    """Each in a namespace of its own, none as old as the others."""
    view = pod.view()
    return [
        replace(view, namespace=f"ns{n}", name=f"p{n}", uid=f"u{n}", created=number - n)
        for n in range(number)
    ]


def in_ml(pods: Iterable[Pod]) -> list[Pod]:
    return [replace(pod, namespace="ml") for pod in pods]


def asking() -> PodBuilder:
    return a_pod("asked").gpu(1).card("A").in_queue("q").gated()


def running() -> PodBuilder:
    return a_pod("p").gpu(1).card("A").in_queue("q").assigned({"A": 1}).charged("q").bound_to("n")


def card_nodes(number: int = 1) -> list[NodeBuilder]:
    return [a_node(f"n{n}").card("A", 8) for n in range(number)]


def filling(pods: list[Pod]) -> list[Pod]:
    """Eight on each node."""
    return [replace(pod, node_name=f"n{n // 8}") for n, pod in enumerate(pods)]


def waiting_before(number: int) -> Books:
    return Books().having(a_queue("q").cards({"A": 0}), card_nodes(), many(asking(), number), asking())


def holding(number: int) -> Books:
    pods = filling(many(running(), number))
    return Books().having(a_queue("q").cards({"A": number}), card_nodes(number // 8), pods, asking())


def holding_on_nodes(number: int) -> Books:
    queue, pods = a_queue("q").cards({"A": 2 * number}), filling(many(running(), number))
    return Books(reasons.NO_FREE_CARD).having(queue, card_nodes(number // 8), pods, asking())


def using_cpu(number: int) -> Books:
    """They ask for nothing else."""
    queue = a_queue("q").cards({"A": 1}).capability(cpu=number)
    pods = many(a_pod("p").in_queue("q").request("cpu", 1).bound_to("n"), number)
    asked = asking().request("cpu", 1).limit("cpu", 1)
    return Books(reasons.INSUFFICIENT_CPU_QUOTA).having(queue, card_nodes(), pods, asked)


def holding_devices(number: int) -> Books:
    books = Books(reasons.INSUFFICIENT_DEVICE_QUOTA)
    books.ledger.devices.put_template(a_template("t").exactly("r", "gpu").view())
    queue = a_queue("q").devices({"capability": {"gpu": {"count": number}}})
    pods = in_ml(many(a_pod("p").in_queue("q").claim("dev", template="t").bound_to("n"), number))
    return books.having(queue, [], pods, a_pod("asked").in_queue("q").claim("dev", template="t").gated())


def member_of_a_gang(number: int) -> Books:
    books = Books()
    books.ledger.put_group(a_group("g").in_queue("q").min_member(number).view())
    mate = a_pod("p").gpu(1).card("A|B").in_group("g").request("cpu", 1).limit("cpu", 1).gated()
    asked = a_pod("asked").gpu(1).card("A").in_group("g").gated()
    queue = a_queue("q").cards({"A": 0}).capability(cpu=1)
    return books.having(queue, card_nodes(), in_ml(many(mate, number)), asked)


def behind_a_gang(number: int) -> Books:
    books = Books()
    books.ledger.put_group(a_group("g").in_queue("q").min_member(number).view())
    mate = a_pod("p").gpu(1).card("A").in_group("g").priority(5).gated()
    return books.having(a_queue("q").cards({"A": 0}), card_nodes(), in_ml(many(mate, number)), asking())


def too_large_for_nodes(number: int) -> Books:
    """No two of them are alike."""
    nodes = [a_node(f"n{n}").mgpu(1, memory=1000 + n) for n in range(number)]
    asked = a_pod("asked").mgpu(core=50, memory=900_000).in_queue("q").gated()
    return Books().having(a_queue("q").shares(core=0, memory=0), nodes, [], asked)


def ill_labelled(number: int) -> Books:
    """Each shows the product and has no device plugin for it."""
    nodes = [a_node(f"n{n}").label("nvidia.com/gpu.product", "A") for n in range(number)]
    return Books(reasons.NO_FREE_CARD).having(a_queue("q").cards({"A": 1}), nodes, [], asking())


def _place(found: Explanation) -> int:
    assert found.place is not None
    return found.place.number


def _first_pods(found: Explanation) -> int:
    assert found.place is not None
    return found.place.before[0].pods


def _why_beyond(found: Explanation) -> int:
    assert found.beyond_nodes is not None
    return FEW


KINDS: list[tuple[Kind, Callable[[Explanation], int]]] = [
    (waiting_before, lambda found: _place(found) - 1),
    (holding, lambda found: len(found.holders)),
    (holding_on_nodes, lambda found: len(found.holders)),
    (using_cpu, lambda found: len(found.holders)),
    (holding_devices, lambda found: len(found.holders)),
    (member_of_a_gang, lambda found: found.together),
    (behind_a_gang, _first_pods),
    (too_large_for_nodes, _why_beyond),
    (ill_labelled, lambda found: len(found.ill_labelled[0].nodes)),
]


@pytest.mark.parametrize(("kind", "told"), KINDS)
def test_there_is_as_much_as_is_said(kind: Kind, told: Callable[[Explanation], int]) -> None:
    assert told(kind(FEW).answered()) == FEW


@pytest.fixture
def mourned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeing one of those of which there are many is a call."""

    class Unit(units.Unit):
        def __del__(self) -> None:
            pass

    class Holder(holders.Holder):
        def __del__(self) -> None:
            pass

    monkeypatch.setattr(units, "Unit", Unit)
    monkeypatch.setattr(holders, "Holder", Holder)


@pytest.mark.usefixtures("mourned")
@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
def test_no_step_is_longer_where_there_is_more(kind: Kind) -> None:
    kept: list[Explanation] = []
    few, more = (longest_step(kind(number).answer(kept)) for number in (FEW, MANY))
    assert more < MARGIN * few


def told(found: Explanation) -> Steps[object]:
    return report.of_queue(found, Ledger(Settings()), lambda namespace: namespace.endswith("7"), MOST)


@pytest.mark.usefixtures("mourned")
@pytest.mark.parametrize("part", [report.namespaces, told, let_go_of_holders])
def test_no_step_of_telling_it_is_longer_where_more_hold_the_quota(
    part: Callable[[Explanation], Steps[object]],
) -> None:
    kept = [holding(number).answered() for number in (FEW, MANY)]
    few, more = (longest_step(part(found)) for found in kept)
    assert more < MARGIN * few


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
def test_pods_and_nodes_may_go_meanwhile(kind: Kind) -> None:
    books = kind(FEW)
    ledger, kept = books.ledger, list[Explanation]()
    leaving = [entry.pod.uid for entry in ledger.entries() if entry.pod.uid != ASKED]
    leaving += [uid for uid, *_ in ledger.cpu_memory.weights() if uid != ASKED]
    nodes = list(ledger.nodes)
    for _ in books.answer(kept):
        if leaving:
            ledger.drop_pod(leaving.pop())
        if nodes:
            ledger.drop_node(nodes.pop())
        finish(ledger.settle())
    assert kept[0].decision == "hold"
