"""What Queue status should show, and the smallest patch that makes it so."""

from collections.abc import Mapping
from typing import Any

import pytest

from core.display.status import published, status_patch
from core.names import MGPU_CORE
from tests.builders import a_queue


def test_only_cards_in_use_are_published_in_cards() -> None:
    assert published({"A": 2000, "B": 0, MGPU_CORE: 30_000, "A/mig-1g.5gb-mixed": 1000}) == {
        "A": "2",
        "A/mig-1g.5gb-mixed": "1",
    }


@pytest.mark.parametrize(
    ("stored", "wanted", "changes"),
    [
        ({}, {}, None),
        ({}, {"A": "2"}, {"A": "2"}),
        ({"A": "2"}, {"A": "2"}, None),
        ({"A": "2000m"}, {"A": "2"}, None),
        ({"A": "2"}, {"A": "3"}, {"A": "3"}),
        ({"A": "2"}, {}, {"A": None}),
        ({"A": "2", "B": "1"}, {"B": "1"}, {"A": None}),
        ({"A": "junk"}, {"A": "2"}, {"A": "2"}),
    ],
)
def test_the_patch_holds_what_differs_and_nulls_what_fell_to_nothing(
    stored: Mapping[str, str], wanted: Mapping[str, str], changes: Mapping[str, str | None] | None
) -> None:
    patch = status_patch(a_queue().allocated(stored).view(), wanted)
    assert patch == (None if changes is None else {"status": {"allocated": changes}})


def test_keys_of_another_manager_are_left_alone() -> None:
    fields: dict[str, Any] = {"f:status": {"f:allocated": {"f:cpu": {}, "f:nvidia.com/gpu": {}}}}
    queue = (
        a_queue()
        .allocated({"cpu": "4", "nvidia.com/gpu": "2", "A": "1"})
        .put("metadata", "managedFields", value=[{"manager": "vc-scheduler", "fieldsV1": fields}])
    )
    assert status_patch(queue.view(), {}) == {"status": {"allocated": {"A": None}}}


def test_a_key_of_our_own_manager_is_ours_to_remove() -> None:
    fields: dict[str, Any] = {"f:status": {"f:allocated": {"f:A": {}}}}
    queue = (
        a_queue()
        .allocated({"A": "1"})
        .put("metadata", "managedFields", value=[{"manager": "cardquota", "fieldsV1": fields}])
    )
    assert status_patch(queue.view(), {}) == {"status": {"allocated": {"A": None}}}
