"""What is said when a queue is written that has others above it or below it."""

from collections.abc import Mapping

import pytest

from core import names, reasons
from core.admission.dispatch import judge
from core.admission.request import ClusterView, Context
from core.cards.inventory import Inventory
from core.settings import Settings
from tests.builders import a_node, a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.admission.samples import a_card_pod, creation, update

THROUGH = {"cards": {"hierarchy": True}}
ALONE = {"cards": {"hierarchy": False}}
QUOTA = f"metadata.annotations[{names.CARD_QUOTA_ANNOTATION}]"


def view(*queues: QueueBuilder) -> ClusterView:
    """Eight of A, and these queues."""
    inventory = Inventory({})
    inventory.put(a_node("n1").card("A", 8).view())
    return ClusterView(
        inventory=inventory, queues={one.name: one for one in (each.view() for each in queues)}
    )


def said(
    queue: QueueBuilder,
    *others: QueueBuilder,
    settings: Mapping[str, object],
    old: QueueBuilder | None = None,
) -> list[tuple[str, str, str]]:
    """(code, path, text) of what is said; nothing may be refused for it."""
    request = creation(queue.build()) if old is None else update(old.build(), queue.build())
    found = judge(request, Context(view(*others), Settings.model_validate(settings)))
    assert found.violations == []
    return [(hint.code, hint.path, hint.text) for hint in found.hints]


ORG = a_queue("org").cards({"A": 8})
RED = a_queue("red").child_of("org")


class TestThroughTheTree:
    @pytest.mark.parametrize(
        ("written", "others", "promised"),
        [
            (RED.cards({"A": 8}), (ORG,), 0),
            (RED.cards({"A": 9}), (ORG,), 9),
            (RED.cards({"A": 5}), (ORG, a_queue("blue").child_of("org").cards({"A": 4})), 9),
            (a_queue("red-1").child_of("red").cards({"A": 9}), (ORG, RED), 9),
            (a_queue("red-1").child_of("red").cards({"A": 9}), (ORG, RED.cards({"A": 9})), 0),
            (ORG, (RED.cards({"A": 5}), a_queue("blue").child_of("org").cards({"A": 4})), 9),
            (ORG, (RED.cards({"A": 8}), a_queue("red-1").child_of("red").cards({"A": 8})), 0),
            (ORG.cards({"B": 1}), (RED.cards({"A": 99}),), 0),
        ],
    )
    def test_children_that_are_promised_more_than_their_parent_has_are_warned_about(
        self, written: QueueBuilder, others: tuple[QueueBuilder, ...], promised: int
    ) -> None:
        """A queue's own promise stands for all below it that it lists, so nothing counts twice."""
        found = [
            text
            for code, _, text in said(written, *others, settings=THROUGH)
            if code == reasons.CARD_QUOTA_ABOVE_PARENT
        ]
        expected = f'"A": the queues below org are promised {promised} together, and it has 8; the smaller limit holds'
        assert found == ([expected] if promised else [])

    def test_a_queue_that_is_moved_below_another_is_compared_with_what_is_below_it(self) -> None:
        rich = a_queue("red").cards({"A": 9})
        found = said(rich.child_of("org"), ORG, rich, settings=THROUGH, old=rich)
        assert [code for code, _, _ in found] == [reasons.CARD_QUOTA_ABOVE_PARENT]

    def test_the_total_of_all_queues_counts_nothing_twice(self) -> None:
        """Red's five are a part of org's eight; a flat cluster promises all of both."""
        found = said(RED.cards({"A": 5}), ORG, settings=THROUGH)
        assert reasons.QUOTA_BEYOND_CLUSTER not in [code for code, _, _ in found]
        flat = said(RED.cards({"A": 5}), ORG, settings=ALONE)
        assert "add up to 13, and the nodes have 8" in next(
            text for code, _, text in flat if code == reasons.QUOTA_BEYOND_CLUSTER
        )
        beyond = said(a_queue("solo").cards({"A": 1}), ORG, RED.cards({"A": 5}), settings=THROUGH)
        assert "add up to 9, and the nodes have 8" in beyond[0][2]

    @pytest.mark.parametrize(
        ("parent", "words"),
        [
            ("gone", "queue red has the parent gone, which does not exist; pods with cards or claims wait"),
            ("", ""),
            ("org", ""),
        ],
    )
    def test_a_gap_in_the_chain_is_warned_about(self, parent: str, words: str) -> None:
        found = said(a_queue("red").child_of(parent), ORG, settings=THROUGH)
        assert [(code, path) for code, path, _ in found] == (
            [(reasons.QUEUE_HIERARCHY_BROKEN, "spec.parent")] if words else []
        )
        assert all(text.startswith(words) for _, _, text in found)

    @pytest.mark.parametrize("dra", [True, False])
    def test_a_queue_cannot_be_its_own_parent(self, dra: bool) -> None:
        """Whether or not devices go by the tree as well."""
        request = creation(a_queue("red").child_of("red").build())
        settings = Settings.model_validate({**THROUGH, "dra": {"hierarchy": dra}})
        (violation,) = judge(request, Context(view(), settings)).violations
        assert (violation.code, violation.path) == (reasons.QUEUE_HIERARCHY_BROKEN, "spec.parent")

    @pytest.mark.parametrize(
        ("above", "warned"), [({"A": 4}, True), ({"A": 5}, False), ({"B": 0}, False), ("{", True)]
    )
    def test_a_pod_that_asks_for_more_than_any_queue_above_has_is_told(
        self, above: dict[str, int] | str, warned: bool
    ) -> None:
        pod = a_card_pod("A", annotations={names.QUEUE_NAME_ANNOTATION: "red"})
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "5"
        queues = view(a_queue("org").cards(above), RED.cards({"A": 8}))
        found = judge(creation(pod), Context(queues, Settings.model_validate(THROUGH)))
        assert (reasons.BEYOND_QUOTA in [hint.code for hint in found.hints]) is warned
        flat = judge(creation(pod), Context(queues, Settings()))
        assert reasons.BEYOND_QUOTA not in [hint.code for hint in flat.hints]


class TestEachByItself:
    def test_a_quota_on_a_queue_that_has_others_below_it_is_told_not_to_hold_for_them(self) -> None:
        ((code, path, text),) = said(ORG, RED, a_queue("blue").child_of("org"), settings=ALONE)
        assert (code, path) == (reasons.CARD_QUOTA_INERT, QUOTA)
        assert text == (
            "limits the pods of queue org alone, not those of the queues below it (blue, red): cards.hierarchy is off"
        )

    def test_a_queue_that_comes_below_one_with_a_quota_is_told_so(self) -> None:
        ((code, path, text),) = said(RED, ORG, settings=ALONE)
        assert (code, path) == (reasons.CARD_QUOTA_INERT, "spec.parent")
        assert (
            text
            == "the card quota of queue org does not limit the pods of this queue: cards.hierarchy is off"
        )

    @pytest.mark.parametrize(
        ("written", "others"),
        [
            (ORG, (a_queue("solo"),)),
            (RED.cards({"A": 1}), (a_queue("org"),)),
            (a_queue("org"), (RED,)),
            (RED, ()),
        ],
    )
    def test_nothing_is_said_of_queues_that_nobody_could_mistake(
        self, written: QueueBuilder, others: tuple[QueueBuilder, ...]
    ) -> None:
        found = said(written, *others, settings={"cards": {"hierarchy": False}, "dra": {"hierarchy": False}})
        assert found == []

    def test_another_write_of_the_queue_says_nothing_again(self) -> None:
        assert said(ORG.priority(5), RED, ORG, settings=ALONE, old=ORG) == []
