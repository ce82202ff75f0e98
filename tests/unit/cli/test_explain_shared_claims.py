"""`cardquota explain` of pods that share a ResourceClaim: it costs once, and nothing more where somebody holds it."""

import json
from pathlib import Path
from typing import Any

from core import names
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.builders.raw import Builder
from tests.unit.cli.conftest import Run

GPU = "deviceclass/gpu"


def limited(name: str, count: int) -> QueueBuilder:
    return a_queue(name).devices({"capability": {"gpu": {"count": count}}})


def sharing(name: str, queue: str = "q") -> PodBuilder:
    return a_pod(name).claim("dev", name="c").in_queue(queue)


def running(name: str, *, asked: bool, queue: str = "q") -> PodBuilder:
    """One that has the claim, with its record or, as nobody was asked for quota, without."""
    record = json.dumps({"dev": {"uid": "uid-ml-c", GPU: "2"}} if asked else {})
    return sharing(name, queue).charged(queue).annotation(names.CLAIMS_ANNOTATION, record).bound_to("n")


def explained(run: Run, pod: str, *objects: Builder, config: Path | None = None) -> Any:
    claim = a_claim("c").exactly("r", "gpu", count=2)
    state = "\n---\n".join(json.dumps(one.build()) for one in (claim, *objects))
    settings = () if config is None else ("--config", config)
    outcome = run("explain", f"ml/{pod}", "--state", "-", "-o", "json", *settings, stdin=state)
    assert outcome.err == ""
    return json.loads(outcome.out)


GANG = [
    a_group("g").in_queue("q").min_member(3),
    *(sharing(f"p{number}").in_group("g").gated() for number in range(3)),
]


def test_a_gang_on_one_claim_asks_for_it_once(run: Run) -> None:
    report = explained(run, "p0", limited("q", 1), *GANG)
    assert report["together"] == 3
    assert report["quota"] == {GPU: {"asked": "2", "used": "0", "limit": "1", "missing": "1"}}
    assert [step["to"] for step in report["help"][0]["steps"]] == ["2"]


def test_so_it_does_before_others_in_line(run: Run) -> None:
    last = sharing("z").created("2024-01-02T00:00:00Z").gated()
    (before,) = explained(run, "z", limited("q", 1), *GANG, last)["position"]["before"]
    assert (before["pods"], before["asks"]) == (3, {GPU: "2"})


def test_a_claim_that_is_held_already_is_not_short(run: Run) -> None:
    holder, waiting = running("h", asked=True), sharing("w").gpu(2).card("A").gated()
    report = explained(run, "w", limited("q", 2).cards({"A": 1}), a_node("n").card("A", 8), holder, waiting)
    assert report["counted"] == {"A": "2", GPU: "2"}
    assert report["quota"] == {"A": {"asked": "2", "used": "0", "limit": "1", "missing": "1"}}
    assert report["heldBy"] == []


def test_a_claim_that_another_queue_holds_costs_the_one_above_both_nothing_more(
    run: Run, tmp_path: Path
) -> None:
    config = tmp_path / "tree.yaml"
    config.write_text("dra: {hierarchy: true}\n", "utf-8")
    below = (limited(name, 1).put("spec", "parent", value="p") for name in ("q", "r"))
    holder, waiting = running("h", asked=True, queue="r"), sharing("w").gated()
    report = explained(run, "w", limited("p", 2), *below, a_node("n"), holder, waiting, config=config)
    assert report["quota"] == {GPU: {"asked": "2", "used": "0", "limit": "1", "missing": "1"}}


def test_a_claim_for_which_nobody_asked_is_asked_for_in_full_by_the_next_who_shares_it(run: Run) -> None:
    holder, waiting = running("h", asked=False), sharing("w").gated()
    report = explained(run, "w", limited("q", 1), a_node("n"), holder, waiting)
    assert "requested 2, used 0, limit 1" in report["message"]
    assert report["quota"] == {GPU: {"asked": "2", "used": "0", "limit": "1", "missing": "1"}}
    assert [pod["pod"] for pod in report["heldBy"]] == ["ml/h"]
    assert [step["to"] for step in report["help"][0]["steps"]] == ["2"]


def test_so_it_is_of_the_queue_above_beside_what_others_use_there(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "tree.yaml"
    config.write_text("dra: {hierarchy: true}\n", "utf-8")
    below = (a_queue(name).child_of("p") for name in ("q", "r"))
    other = a_pod("o").claim("dev", name="d").in_queue("r").charged("r").bound_to("n")
    objects = (limited("p", 2), *below, a_node("n"), a_claim("d").exactly("r", "gpu"), other)
    pods = running("h", asked=False, queue="r"), sharing("w").gated()
    report = explained(run, "w", *objects, *pods, config=config)
    assert report["quota"] == {GPU: {"asked": "2", "used": "1", "limit": "2", "missing": "1", "queue": "p"}}
    assert [step["to"] for step in report["help"][0]["steps"]] == ["3"]


def test_so_it_is_of_a_card_that_is_the_same_device(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "linked.yaml"
    config.write_text("cards: {equivalents: {A: [gpu]}}\n", "utf-8")
    queue, waiting = a_queue("q").cards({"A": 1}), sharing("w").gated()
    report = explained(run, "w", queue, a_node("n"), running("h", asked=False), waiting, config=config)
    assert report["quota"]["A"] == {"asked": "2", "used": "0", "limit": "1", "missing": "1"}
    assert [step["to"] for step in report["help"][0]["steps"]] == ["2"]


def test_a_raise_counts_a_claim_once_that_those_before_it_in_line_share(run: Run) -> None:
    """Two devices for each, and three for both."""
    own = [a_claim(name).exactly("r", "gpu") for name in ("a", "b", "both")]
    pods = [
        a_pod(name).claim("own", name=name).claim("both", name="both").in_queue("q").gated()
        for name in ("a", "b")
    ]
    report = explained(run, "b", limited("q", 1), *own, *pods)
    assert [step["to"] for step in report["help"][0]["steps"]] == ["3"]
