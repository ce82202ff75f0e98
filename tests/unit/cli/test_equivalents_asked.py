"""`cards.equivalents` in `can-run` and `advise`: claims and card names that are charged to one quota, of pods to come."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.cli.conftest import Run
from tests.unit.cli.situations import H200, a_state
from tests.unit.cli.test_equivalents_told import (
    BOTH_HELD,
    CARDS_HELD,
    CLAIMS_HELD,
    CLASS,
    EACH,
    LIMITED,
    NODE,
    ONE,
    QUEUE,
    SHARED,
    claiming,
    equivalents,
)

__all__ = ["equivalents"]
ROOM = a_queue("research").cards({H200: 3})
CLAIM, CARD = claiming("new"), a_pod("new").gpu(1).card(H200).in_queue("research")


def asked(
    run: Run, folder: Path, state: str, pod: PodBuilder, *command: object, settings: Path | None
) -> dict[str, Any]:
    file = folder / "m.json"
    file.write_text(json.dumps(pod.build()))
    more = () if settings is None else ("--config", settings)
    outcome = run(*command, file, "--state", "-", "-o", "json", *more, stdin=state)
    assert outcome.err == ""
    report: dict[str, Any] = json.loads(outcome.out)
    return report


@pytest.mark.parametrize(
    ("queue", "held", "pod", "key"),
    [
        (QUEUE, CARDS_HELD, CLAIM, H200),
        (QUEUE, CLAIMS_HELD, CARD, H200),
        (QUEUE, BOTH_HELD, CARD, H200),
        (QUEUE, BOTH_HELD, CLAIM, H200),
        (QUEUE, SHARED, CARD, H200),
        (LIMITED, BOTH_HELD, CARD, CLASS),
        (LIMITED, CARDS_HELD, CLAIM, CLASS),
    ],
    ids=[
        "a claim behind cards",
        "a card behind claims",
        "a card behind both",
        "a claim behind both",
        "a card behind a shared claim",
        "a card behind the quota of the class",
        "a claim behind cards in the quota of the class",
    ],
)
def test_a_pod_to_come_is_held_against_both(
    run: Run, tmp_path: Path, equivalents: Path, queue: Any, held: Any, pod: PodBuilder, key: str
) -> None:
    """It waits, the quota that is advised is one more, and with that it runs; the limit that is short is the one raised."""
    state = a_state(NODE, queue, EACH, ONE, *held)
    report = asked(run, tmp_path, state, pod, "can-run", settings=equivalents)
    assert (report["verdict"], report["waits"]["quota"][key]["used"]) == ("waits", "2")
    advice = asked(run, tmp_path, state, pod, "advise", "research", "--fits", settings=equivalents)
    assert advice["quota"] == {key: {"now": "2", "needed": "3", "by": "1"}}
    assert not advice["waits"]
    raised = LIMITED.devices({"capability": {"a.dev": {"count": 3}}}) if key == CLASS else ROOM
    state = a_state(NODE, raised, EACH, ONE, *held)
    assert asked(run, tmp_path, state, pod, "can-run", settings=equivalents)["verdict"] == "runs"


@pytest.mark.parametrize(
    ("held", "pod"), [(CARDS_HELD, CLAIM), (CLAIMS_HELD, CARD)], ids=["a claim", "a card"]
)
def test_without_the_setting_one_has_nothing_to_do_with_the_other(
    run: Run, tmp_path: Path, held: Any, pod: PodBuilder
) -> None:
    state = a_state(NODE, QUEUE, EACH, ONE, *held)
    assert asked(run, tmp_path, state, pod, "can-run", settings=None)["verdict"] == "runs"
    assert not asked(run, tmp_path, state, pod, "advise", "research", "--fits", settings=None)["quota"]
