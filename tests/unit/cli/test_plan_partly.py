"""`cardquota plan` over the pods of one namespace: only who waits whatever others hold is said to wait, and why."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from core import names
from tests.builders import a_group, a_node, a_queue
from tests.unit.cli.conftest import Run

Raw = dict[str, Any]
H200: Final = "NVIDIA-H200"


def waiting(name: str, cards: int, second: int, **annotations: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "ml",
            "name": name,
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
            "annotations": {
                names.CARD_NAME_ANNOTATION: H200,
                names.QUEUE_NAME_ANNOTATION: "team",
                **annotations,
            },
        },
        "spec": {
            "schedulingGates": [{"name": names.GATE}],
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(cards)}}}],
        },
    }


class Narrowed:
    """Plans over the pods of namespace `ml`, of a cluster with a queue of four cards."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._file = folder / "dump.json"

    def report(self, *items: Raw) -> Raw:
        cluster = [a_node("n1").card(H200, 16).build(), a_queue("team").cards({H200: 4}).build()]
        metadata = {"annotations": {names.PODS_OF_ANNOTATION: "ml"}}
        whole = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": [*cluster, *items]}
        self._file.write_text(json.dumps(whole), "utf-8")
        found: Raw = json.loads(self._run("plan", "--state", self._file, "-o", "json").out)
        return found

    def __call__(self, *items: Raw) -> dict[str, tuple[str, str]]:
        pods = self.report(*items)["pods"]
        return {key.removeprefix("ml/"): (one["decision"], one["reason"]) for key, one in pods.items()}


@pytest.fixture
def narrowed(run: Run, tmp_path: Path) -> Narrowed:
    return Narrowed(run, tmp_path)


NOT_KNOWN: Final = ("hold", "")
WAITS: Final = ("hold", "InsufficientScalarQuota")


def test_a_hold_that_rests_on_a_lift_is_not_known_either(narrowed: Narrowed) -> None:
    """Where others hold two of the four, the large one waits and the small one is let in."""
    found = narrowed(waiting("large", 4, 1), waiting("small", 1, 2))
    assert found == {"large": NOT_KNOWN, "small": NOT_KNOWN}


def test_whoever_asks_for_more_than_the_quota_waits_in_any_case(narrowed: Narrowed) -> None:
    pods = [waiting(f"p{number}", 1, number) for number in range(10)]
    found = narrowed(*pods, waiting("beyond", 5, 30))
    assert found == {**{f"p{number}": NOT_KNOWN for number in range(10)}, "beyond": WAITS}


def test_events_are_told_of_those_alone_who_wait_in_any_case(narrowed: Narrowed) -> None:
    report = narrowed.report(waiting("large", 4, 1), waiting("small", 1, 2), waiting("beyond", 5, 3))
    assert [event["object"] for event in report["events"]] == ["Pod ml/beyond"]


def test_a_member_is_not_said_to_lack_others_who_may_be_let_in(narrowed: Narrowed) -> None:
    """Three of which two are enough; the third, for which no quota is left on paper, may start with either."""
    group = a_group("g", namespace="ml").min_member(2).in_queue("team").build()
    members = [waiting(f"m{number}", 2, number, **{names.GROUP_NAME_ANNOTATION: "g"}) for number in range(3)]
    assert narrowed(group, *members) == {"m0": NOT_KNOWN, "m1": NOT_KNOWN, "m2": NOT_KNOWN}


def test_a_gang_that_lacks_members_waits_in_any_case(narrowed: Narrowed) -> None:
    group = a_group("g", namespace="ml").min_member(3).in_queue("team").build()
    member = waiting("m", 1, 1, **{names.GROUP_NAME_ANNOTATION: "g"})
    assert narrowed(group, member) == {"m": ("hold", "GangIncomplete")}
