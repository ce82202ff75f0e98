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
from tests.fakes.counted import calls_of
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

    def test_each_card_is_compared_at_the_nearest_queue_above_that_lists_it(self) -> None:
        """Red's four of A are a part of what org lists, so the root is promised org's eight of them."""
        root = a_queue(names.ROOT_QUEUE).cards({"A": 7, "B": 3, "C": 3})
        blue = a_queue("blue").child_of("org").cards({"A": 5, "B": 1})
        solo = a_queue("solo").cards({"B": 1})
        found = said(RED.cards({"A": 4, "B": 2, "C": 3}), root, ORG, blue, solo, settings=THROUGH)
        assert [
            text.partition(";")[0] for code, _, text in found if code == reasons.CARD_QUOTA_ABOVE_PARENT
        ] == [
            '"A": the queues below org are promised 9 together, and it has 8',
            '"B": the queues below root are promised 4 together, and it has 3',
        ]

    @pytest.mark.parametrize("parent", ["gone", "blue"])
    def test_above_a_gap_or_a_circle_nothing_is_compared(self, parent: str) -> None:
        """The root is promised too much, but not by a queue that is not below it."""
        root, solo = a_queue(names.ROOT_QUEUE).cards({"A": 1}), a_queue("solo").cards({"A": 2})
        blue = a_queue("blue").child_of("red")
        found = said(a_queue("red").child_of(parent).cards({"A": 1}), root, solo, blue, settings=THROUGH)
        assert reasons.CARD_QUOTA_ABOVE_PARENT not in [code for code, _, _ in found]


def cost(queues: int, cards: int, *, above: int = 1, alike: bool = True, through: bool = True) -> int:
    """The calls of a write to one of so many queues that list so many cards each, and share their parent.

    So many queues are above them, one above the other, and share in listing the same cards. Unless `alike` each of them lists one
    card more that no other one does.
    """
    quota = {f"CARD-{number}": 8 for number in range(cards)}
    parents = [*(f"level-{number}" for number in range(above)), names.ROOT_QUEUE]
    levels = [
        a_queue(name).child_of(parents[number + 1]).cards(dict.fromkeys(list(quota)[number::above], 8)).view()
        for number, name in enumerate(parents[:-1])
    ]
    siblings = [
        a_queue(f"q{number}")
        .child_of("level-0")
        .cards(quota if alike else {**quota, f"OWN-{number}": 1})
        .view()
        for number in range(queues)
    ]
    stored = ClusterView(inventory=Inventory({}), queues={one.name: one for one in (*levels, *siblings)})
    written, old = (
        a_queue("q0").child_of("level-0").cards(each).build() for each in ({**quota, "CARD-0": 9}, quota)
    )
    context = Context(stored, Settings.model_validate(THROUGH if through else ALONE))
    found = judge(update(old, written), context)
    assert sum(hint.code == reasons.CARD_QUOTA_ABOVE_PARENT for hint in found.hints) == cards * through
    return calls_of(lambda: judge(update(old, written), context))


class TestTheCostOfAWrite:
    """As much as there are queues and entries in their quotas, whatever stands above what."""

    def test_a_quota_of_a_hundred_cards_among_a_thousand_queues_is_answered_at_once(self) -> None:
        """A million calls take about a tenth of a second, and the loop is never deaf for half of that."""
        assert cost(1000, cards=100) <= 250_000

    def test_it_grows_with_the_cards_and_no_faster(self) -> None:
        assert cost(200, cards=40) <= 4.5 * cost(200, cards=10)

    def test_it_grows_with_the_queues_and_no_faster(self) -> None:
        assert cost(800, cards=10) <= 4.5 * cost(200, cards=10)

    def test_it_is_the_same_where_each_queue_above_lists_another_card(self) -> None:
        """What is promised below one of them is a part of what is promised below the next."""
        assert cost(200, cards=30, above=30) <= 1.2 * cost(200, cards=30)

    def test_thousands_of_different_quotas_are_not_read_anew_with_each_write(self) -> None:
        assert cost(2000, cards=5, alike=False) <= 2.4 * cost(1000, cards=5, alike=False)

    def test_where_each_stands_by_itself_the_quotas_of_others_are_not_read(self) -> None:
        few, many = (cost(queues, cards=5, alike=False, through=False) for queues in (100, 1100))
        assert many - few <= 1000 * 20


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
