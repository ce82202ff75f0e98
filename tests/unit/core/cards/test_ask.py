"""How many cards a pod asks for, and under which card it is booked, at every stage of its life."""

from collections.abc import Mapping

import pytest

from core.cards.ask import AskError, CardAsk, card_ask
from core.cards.discovery import CardStock
from tests.builders import a_pod
from tests.builders.objects import PodBuilder

GPU = "nvidia.com/gpu"
KNOWN = {"A": frozenset({GPU}), "B": frozenset({GPU}), "Z": frozenset({"v.com/b", "v.com/z"})}


def ask(
    pod: PodBuilder, *node: str, known: Mapping[str, frozenset[str]] = KNOWN
) -> CardAsk | AskError | None:
    on_node = {card: CardStock(GPU, 8000) for card in node}
    return card_ask(pod.view(), lambda card: known.get(card, frozenset()), on_node)


def booked(pod: PodBuilder, *node: str, known: Mapping[str, frozenset[str]] = KNOWN) -> tuple[str, str, int]:
    """(card, resource, whole cards)."""
    asked = ask(pod, *node, known=known)
    assert isinstance(asked, CardAsk), asked
    assert asked.milli % 1000 == 0
    return asked.card, asked.resource, asked.milli // 1000


def refused(pod: PodBuilder, *node: str, known: Mapping[str, frozenset[str]] = KNOWN) -> str:
    asked = ask(pod, *node, known=known)
    assert isinstance(asked, AskError), asked
    return asked.message


class TestCount:
    @pytest.mark.parametrize("pod", [a_pod(), a_pod().gpu(8), a_pod().gpu(8).card("")])
    def test_a_pod_without_card_name_asks_for_no_card(self, pod: PodBuilder) -> None:
        assert ask(pod) is None

    @pytest.mark.parametrize(
        ("pod", "count"),
        [
            (a_pod().gpu(2), 2),
            (a_pod().gpu(1).gpu(1, container="c2"), 2),
            (a_pod().gpu(1).gpu(1, container="c2").init_container("i", limits={GPU: 4}), 4),
            (a_pod().gpu(0), 0),
            (a_pod().gpu("500m"), 1),
            (a_pod().gpu("1500m"), 2),
            (a_pod().gpu("1k"), 1000),
            (a_pod().request(GPU, 3), 3),
            (a_pod().gpu(2).request(GPU, 1), 2),
        ],
        ids=["limit", "sum", "init", "zero", "up", "up again", "suffix", "request", "limit before request"],
    )
    def test_the_resource_is_counted_in_whole_cards(self, pod: PodBuilder, count: int) -> None:
        assert booked(pod.card("A").gated()) == ("A", GPU, count)

    def test_a_card_of_several_resources_is_counted_by_the_one_that_is_asked_for(self) -> None:
        assert booked(a_pod().card("Z").limit("v.com/z", 2).gated()) == ("Z", "v.com/z", 2)
        both = a_pod().card("Z").limit("v.com/z", 2).limit("v.com/b", 1).gated()
        assert booked(both) == ("Z", "v.com/b", 1)

    def test_an_unknown_card_cannot_be_counted(self) -> None:
        assert refused(a_pod().card("X").gpu(1).gated()) == "no resource name found for card <X>"

    def test_the_resource_must_be_asked_for(self) -> None:
        message = refused(a_pod().card("A").limit("cpu", 1).gated())
        assert message == "no resource <nvidia.com/gpu> defined in requests/limits for card <A>"


class TestSeveralAlternatives:
    def test_while_open_the_whole_expression_is_booked(self) -> None:
        pod = a_pod().card("A|B").gpu(2).gated()
        assert ask(pod) == CardAsk("A|B", ("A", "B"), "A|B", GPU, 2000)
        assert booked(pod, known={"B": frozenset({GPU})}) == ("A|B", GPU, 2)

    def test_a_record_on_a_gated_pod_is_not_believed(self) -> None:
        assert booked(a_pod().card("A|B").gpu(2).gated().assigned({"B": 2})) == ("A|B", GPU, 2)

    def test_a_lifted_pod_is_booked_under_its_record(self) -> None:
        assert booked(a_pod().card("A|B").gpu(2).assigned({"B": 2})) == ("B", GPU, 2)

    def test_an_ungated_pod_without_record_stays_open(self) -> None:
        assert booked(a_pod().card("A|B").gpu(2)) == ("A|B", GPU, 2)

    @pytest.mark.parametrize(
        ("record", "node", "card"),
        [
            (None, ["A"], "A"),
            (None, ["B"], "B"),
            (None, ["B", "A"], "A"),
            (None, [], "A"),
            (None, ["C"], "A"),
            ("B", ["B"], "B"),
            ("B", ["A", "B"], "B"),
            ("B", ["A"], "A"),
            ("B", [], "B"),
            ("B", ["C"], "B"),
            ("C", ["C"], "A"),
        ],
    )
    def test_the_node_decides_then_the_record_then_the_first(
        self, record: str | None, node: list[str], card: str
    ) -> None:
        pod = a_pod().card("A|B").gpu(2).bound_to("n")
        pod = pod.assigned({record: 2}) if record else pod
        assert booked(pod, *node) == (card, GPU, 2)

    def test_an_alternative_that_cannot_be_counted_is_not_the_real_card(self) -> None:
        known = {"A": frozenset({"v.com/x"}), "B": frozenset({GPU})}
        assert booked(a_pod().card("A|B").gpu(2).bound_to("n"), "A", "B", known=known) == ("B", GPU, 2)

    def test_nothing_is_dropped_when_the_node_is_unknown(self) -> None:
        pod = a_pod().card("A|B").gpu(2).bound_to("n").view()
        asked = card_ask(pod, lambda card: KNOWN.get(card, frozenset()), None)
        assert isinstance(asked, CardAsk)
        assert asked.card == "A"


class TestCardsThatLeftTheCluster:
    """A pod that runs, or may be bound any moment, is still counted."""

    @pytest.mark.parametrize("pod", [a_pod(), a_pod().bound_to("n")], ids=["lifted", "bound"])
    def test_first_by_the_record(self, pod: PodBuilder) -> None:
        pod = pod.card("X").gpu(2)
        assert booked(pod.assigned({"X": 3})) == ("X", GPU, 3)
        assert booked(pod.limit("rdma/hca", 1).assigned({"X": 3})) == ("X", "", 3)

    @pytest.mark.parametrize("pod", [a_pod(), a_pod().bound_to("n")], ids=["lifted", "bound"])
    def test_then_by_the_only_extended_resource(self, pod: PodBuilder) -> None:
        asked = pod.card("X").gpu(2).limit("cpu", 4).mgpu(core=10)
        assert booked(asked) == ("X", GPU, 2)
        assert booked(asked.assigned("garbage")) == ("X", GPU, 2)

    def test_else_it_cannot_be_counted(self) -> None:
        pod = a_pod().card("X").gpu(2).limit("rdma/hca", 1).bound_to("n")
        assert refused(pod) == "no resource name found for card <X>"
        assert refused(a_pod().card("X").bound_to("n")) == "no resource name found for card <X>"

    def test_a_gated_pod_waits_for_its_card_whatever_it_carries(self) -> None:
        assert refused(a_pod().card("X").gpu(2).assigned({"X": 2}).gated()).endswith("<X>")

    def test_a_known_card_whose_resource_is_not_asked_for_is_counted_by_its_record_alone(self) -> None:
        pod = a_pod().card("A").limit("rdma/hca", 4).bound_to("n")
        assert refused(pod).startswith("no resource <nvidia.com/gpu> defined")
        assert booked(pod.assigned({"A": 2})) == ("A", "", 2)


class TestExcessive:
    """An expression beyond the limits is not looked at: what was admitted counts by its record, and nothing else."""

    POD = a_pod().gpu(2).card("|".join(f"C{number}" for number in range(37_000)))

    @pytest.mark.parametrize(
        "pod",
        [
            POD.gated(),
            POD,
            POD.bound_to("n"),
            POD.gated().assigned({"A": 2}),
            POD.assigned("{}").bound_to("n"),
        ],
    )
    def test_without_a_record_that_counts_it_is_a_problem(self, pod: PodBuilder) -> None:
        message = refused(pod, "A", "C1")
        assert "volcano.sh/card.name names more than 16 cards, or has more than 4096 characters" in message
        assert "shorten it" in message

    @pytest.mark.parametrize("pod", [POD, POD.bound_to("n"), POD.bound_to("n").gated()])
    def test_what_was_admitted_stays_counted_whatever_the_nodes_carry(self, pod: PodBuilder) -> None:
        assert booked(pod.assigned({"A": 3})) == booked(pod.assigned({"A": 3}), "C1", "A") == ("A", "", 3)
        asked = ask(pod.assigned({"A": 3}))
        assert isinstance(asked, CardAsk)
        assert asked.alternatives == ("A",)
