"""What a card quota promises and may not be able to keep: stored, with a warning."""

import json
from collections.abc import Mapping

import pytest

from core import names, reasons
from core.admission.dispatch import judge
from core.admission.request import NOTHING_LISTED, ClusterView, Context
from core.cards.inventory import Inventory
from core.settings import Settings
from tests.builders import a_node, a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.admission.samples import answer, creation, settings, update

PATH = f"metadata.annotations[{names.CARD_QUOTA_ANNOTATION}]"
MINE = a_queue("mine")


def cluster(*queues: QueueBuilder, resources: Mapping[str, str] | None = None) -> ClusterView:
    """Eight of A, two of its MIG slices, four of B, and these queues."""
    inventory = Inventory(resources or {})
    for node in (a_node("n1").card("A", 8).mig("1g", 2), a_node("n2").card("B", 4)):
        inventory.put(node.view())
    return ClusterView(
        inventory=inventory, queues={view.name: view for view in (queue.view() for queue in queues)}
    )


def said(queue: QueueBuilder, view: ClusterView, old: QueueBuilder | None = None) -> list[tuple[str, str]]:
    """(code, detail) of what is said when the queue is written; nothing may be refused for it."""
    request = creation(queue.build()) if old is None else update(old.build(), queue.build())
    findings = judge(request, Context(view, Settings()))
    assert findings.violations == []
    assert {hint.path for hint in findings.hints} <= {PATH}
    return [(hint.code, hint.text) for hint in findings.hints]


class TestCardsOfTheCluster:
    @pytest.mark.parametrize(
        ("quota", "code", "words"),
        [
            ({"A": 8, "B": 4, "A/mig-1g-mixed": 2}, "", ""),
            (
                {"A": 9},
                reasons.QUOTA_BEYOND_CLUSTER,
                '"A": the quotas of all queues add up to 9, and the nodes have 8',
            ),
            ({"A/mig-1g-mixed": 3}, reasons.QUOTA_BEYOND_CLUSTER, "add up to 3, and the nodes have 2"),
            ({"A/mps-80g*1/8": 1}, reasons.QUOTA_BEYOND_CLUSTER, "add up to 1, and the nodes have 0"),
            ({"Q": 1}, reasons.CARD_UNKNOWN, 'no node carries the card "Q" now'),
            ({"Q": 0}, "", ""),
            ({"nvidia.com/gpu": 0}, reasons.CARD_NAME_MALFORMED, "nvidia.com/gpu"),
            ({"-A": 0}, reasons.CARD_NAME_MALFORMED, "-A"),
        ],
    )
    def test_each_entry_is_compared(self, quota: dict[str, int], code: str, words: str) -> None:
        found = said(MINE.cards(quota), cluster())
        assert [entry[0] for entry in found] == ([code] if code else [])
        assert all(words in entry[1] for entry in found)

    def test_a_name_that_is_nearly_right_is_suggested(self) -> None:
        view = cluster(resources={"NVIDIA-H200": "nvidia.com/gpu"})
        ((code, detail),) = said(MINE.cards({"NVIDIA-H2OO": 1}), view)
        assert code == reasons.CARD_UNKNOWN
        assert detail.endswith("did you mean NVIDIA-H200?")

    def test_the_quotas_of_all_queues_count_the_written_one_as_written(self) -> None:
        others = (a_queue("a").cards({"A": 3}), a_queue("b").cards({"A": 2}), a_queue("c").cards("{"))
        stored = MINE.cards({"A": 1})
        view = cluster(*others, stored)
        assert said(MINE.cards({"A": 3}), view, stored) == []
        ((code, detail),) = said(MINE.cards({"A": 4}), view, stored)
        assert code == reasons.QUOTA_BEYOND_CLUSTER
        assert "add up to 9, and the nodes have 8" in detail

    def test_only_what_a_write_raises_is_mentioned(self) -> None:
        """A cluster may be oversold on purpose; nobody wants to hear of it with every edit."""
        old = MINE.cards({"A": 20, "B": 20, "Q": 2})
        assert said(MINE.cards({"A": 20, "B": 19, "Q": 1}), cluster(), old) == []
        assert len(said(MINE.cards({"A": 21, "B": 20, "Q": 3}), cluster(), old)) == 2

    def test_without_the_nodes_nothing_is_compared(self) -> None:
        assert said(MINE.cards({"A": 99, "Q": 9}), NOTHING_LISTED) == []
        assert said(MINE.cards({"A": 9}), ClusterView(inventory=cluster().inventory)) != []


class TestBelowUse:
    OLD = MINE.cards({"A": 8, "B": 4}).allocated({"A": "6", "B": "1500m", "cpu": "9"})

    @pytest.mark.parametrize(
        ("quota", "details"),
        [
            ('{"A": 6, "B": 2}', []),
            ('{"A": 5, "B": 2}', ['"A": lowered to 5 while 6 are in use']),
            ('{"A": 8, "B": 1}', ['"B": lowered to 1 while 1500m are in use']),
            ('{"B": 4}', ['"A": lowered to 0 while 6 are in use']),
            ("{}", ['"A": lowered to 0 while 6', '"B": lowered to 0 while 1500m']),
            ('{"A": 9, "B": 4, "cpu": 1}', []),
        ],
    )
    def test_a_quota_below_use_is_stored_with_a_warning(self, quota: str, details: list[str]) -> None:
        found = said(MINE.cards(quota), NOTHING_LISTED, self.OLD)
        assert [entry[0] for entry in found] == [reasons.QUOTA_BELOW_USE] * len(details)
        assert all(entry[1].startswith(start) for entry, start in zip(found, details, strict=True))

    def test_removing_the_annotation_removes_the_quota(self) -> None:
        found = said(MINE, NOTHING_LISTED, self.OLD)
        assert [code for code, _ in found] == [reasons.QUOTA_BELOW_USE] * 2

    def test_a_quota_that_was_below_use_already_is_not_mentioned_again(self) -> None:
        """Unless it is lowered further."""
        old = MINE.cards({"A": 5, "B": 1}).allocated({"A": "6"})
        assert said(MINE.cards({"A": 5, "B": 2}), NOTHING_LISTED, old) == []
        assert len(said(MINE.cards({"A": 4, "B": 2}), NOTHING_LISTED, old)) == 1

    @pytest.mark.parametrize("used", ["x", "-1", ""])
    def test_a_status_of_somebody_else_is_no_use(self, used: str) -> None:
        old = MINE.cards({"A": 5}).allocated({"A": used})
        assert said(MINE.cards({"A": 1}), NOTHING_LISTED, old) == []

    def test_a_stored_quota_that_cannot_be_read_was_none(self) -> None:
        old = MINE.cards("{").allocated({"A": "6"})
        assert said(MINE.cards({"A": 1}), NOTHING_LISTED, old) == []


def test_other_writes_and_a_feature_that_is_off_hear_nothing() -> None:
    queue = MINE.cards({"A": 99})
    assert said(queue.put("spec", "weight", value=2), cluster(), queue) == []
    assert answer(creation(queue.build()), cluster(), settings(features={"cards": False})).warnings == ()


def test_a_quota_of_thousands_of_entries_is_answered_with_a_handful_of_suggestions() -> None:
    """Each suggestion compares a name with all known ones; nobody reads more of them either."""
    quota = json.dumps({f"NVIDIA-X{number}": 1 for number in range(5000)})
    assert len(said(MINE.cards(quota), cluster())) < 20
