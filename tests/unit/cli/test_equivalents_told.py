"""`cards.equivalents`: what `explain` and `verify` say where claims and card names are charged to one quota."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.pods import PodBuilder
from tests.unit.cli.conftest import Run
from tests.unit.cli.situations import H200, a_node_of, a_state, running, waiting

CLASS: Final = "deviceclass/a.dev"
NODE: Final = a_node_of(H200, "n1")
QUEUE: Final = a_queue("research").cards({H200: 2})
LIMITED: Final = a_queue("research").cards({H200: 8}).devices({"capability": {"a.dev": {"count": 2}}})
EACH: Final = a_template("each").exactly("r", "a.dev")
ONE: Final = a_claim("one").exactly("r", "a.dev")


def claiming(name: str, claim: str = "") -> PodBuilder:
    """A pod with a device of its own, or with one that it shares."""
    made = a_pod(name).claim("dev", name=claim) if claim else a_pod(name).claim("dev", template="each")
    return made.in_queue("research")


def holding(name: str, claim: str = "") -> PodBuilder:
    return claiming(name, claim).charged("research").bound_to("n1")


CARDS_HELD: Final = (running("train", 2),)
CLAIMS_HELD: Final = (holding("c1"), holding("c2"))
BOTH_HELD: Final = (holding("c1"), running("train", 1))
SHARED: Final = (holding("c1", "one"), holding("c2", "one"), running("train", 1))


@pytest.fixture
def equivalents(tmp_path: Path) -> Path:
    path = tmp_path / "cardquota.yaml"
    path.write_text(f"cards: {{equivalents: {{{H200}: [a.dev]}}}}\n")
    return path


def explained(run: Run, *more: object, stdin: str) -> dict[str, Any]:
    outcome = run("explain", "ml/p", "--state", "-", "-o", "json", *more, stdin=stdin)
    assert (outcome.status, outcome.err) == (0, "")
    report: dict[str, Any] = json.loads(outcome.out)
    return report


CASES: Final = [
    (QUEUE, CARDS_HELD, claiming("p").gated(), "InsufficientScalarQuota", H200, {"ml/train": "2"}),
    (QUEUE, CLAIMS_HELD, waiting("p"), "InsufficientScalarQuota", H200, {"ml/c1": "1", "ml/c2": "1"}),
    (QUEUE, BOTH_HELD, waiting("p"), "InsufficientScalarQuota", H200, {"ml/c1": "1", "ml/train": "1"}),
    (
        QUEUE,
        BOTH_HELD,
        claiming("p").gated(),
        "InsufficientScalarQuota",
        H200,
        {"ml/c1": "1", "ml/train": "1"},
    ),
    (
        QUEUE,
        SHARED,
        waiting("p"),
        "InsufficientScalarQuota",
        H200,
        {"ml/c1": "1", "ml/c2": "1", "ml/train": "1"},
    ),
    (LIMITED, BOTH_HELD, waiting("p"), "InsufficientDeviceQuota", CLASS, {"ml/c1": "1", "ml/train": "1"}),
    (LIMITED, CARDS_HELD, claiming("p").gated(), "InsufficientDeviceQuota", CLASS, {"ml/train": "2"}),
]
IDS: Final = [
    "a claim behind cards",
    "a card behind claims",
    "a card behind both",
    "a claim behind both",
    "a card behind a shared claim",
    "a card behind the quota of the class",
    "a claim behind cards in the quota of the class",
]


@pytest.mark.parametrize(("queue", "held", "pod", "reason", "key", "holders"), CASES, ids=IDS)
def test_explain_counts_them_as_one(
    run: Run,
    equivalents: Path,
    queue: Any,
    held: Any,
    pod: Any,
    reason: str,
    key: str,
    holders: dict[str, str],
) -> None:
    """Reason, figures and holders; each remedy, applied, lifts the pod; without the setting one has nothing to do with the other."""
    objects = (NODE, queue, EACH, ONE, *held, pod)
    report = explained(run, "--config", equivalents, stdin=a_state(*objects))
    assert (report["decision"], report["reason"]) == ("hold", reason)
    assert report["counted"] == {H200: "1", CLASS: "1"}
    assert report["quota"][key] == {"asked": "1", "used": "2", "limit": "2", "missing": "1"}
    assert {one["pod"]: one["amounts"][key] for one in report["heldBy"]} == holders
    raised, ended = ([step] for remedy in report["help"] for step in remedy["steps"])
    assert (raised[0]["action"], raised[0]["key"], raised[0]["by"]) == ("raise", key, "1")
    more = (
        LIMITED.devices({"capability": {"a.dev": {"count": 3}}}) if key == CLASS else QUEUE.cards({H200: 3})
    )
    left = [one for one in held if one.build()["metadata"]["name"] not in str(ended[0]["pods"])]
    assert len(left) == len(held) - 1
    for changed in ((NODE, more, EACH, ONE, *held, pod), (NODE, queue, EACH, ONE, *left, pod)):
        assert explained(run, "--config", equivalents, stdin=a_state(*changed))["decision"] == "lift"
    apart = {one.build()["metadata"]["name"] for one in held}
    if apart in ({"train"}, {"c1", "c2"}):
        assert explained(run, stdin=a_state(*objects))["decision"] == "lift"


@pytest.mark.parametrize(
    ("held", "status", "wrong"),
    [
        (CARDS_HELD, {H200: "2", CLASS: "2"}, []),
        (CLAIMS_HELD, {H200: "2", CLASS: "2"}, []),
        (BOTH_HELD, {H200: "2", CLASS: "2"}, []),
        (SHARED, {H200: "2", CLASS: "2"}, []),
        ((), {}, []),
        (BOTH_HELD, {H200: "1", CLASS: "2"}, [f"shows 1 of {H200}, and its pods use 2"]),
        (BOTH_HELD, {H200: "2", CLASS: "1"}, [f"shows 1 of {CLASS}, and its pods use 2"]),
        (SHARED, {H200: "3", CLASS: "3"}, [f"shows 3 of {H200}", f"shows 3 of {CLASS}"]),
        ((), {H200: "1", CLASS: "1"}, [f"shows 1 of {H200}"]),
    ],
    ids=[
        "cards",
        "claims",
        "both",
        "a shared claim once",
        "nobody",
        "the claim left out of the cards",
        "the card left out of the class",
        "a shared claim twice",
        "what nobody has",
    ],
)
def test_verify_holds_the_status_against_both(
    run: Run, equivalents: Path, held: Any, status: dict[str, str], wrong: list[str]
) -> None:
    objects = (NODE, QUEUE.allocated(status), EACH, ONE, *held)
    outcome = run("verify", "--state", "-", "-o", "json", "--config", equivalents, stdin=a_state(*objects))
    checks = json.loads(outcome.out)["checks"]
    found = [one["found"] for one in checks if one["result"] == "wrong"]
    assert len(found) == len(wrong), found
    assert all(text in one for text, one in zip(wrong, found, strict=True)), found
    assert outcome.status == bool(wrong)
