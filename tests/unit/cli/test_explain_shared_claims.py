"""`cardquota explain` of pods that share a ResourceClaim: it costs once, and nothing more where somebody holds it."""

import json
from pathlib import Path
from typing import Any

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
    holder, waiting = sharing("h").charged("q").bound_to("n"), sharing("w").gpu(2).card("A").gated()
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
    holder, waiting = sharing("h", "r").charged("r").bound_to("n"), sharing("w").gated()
    report = explained(run, "w", limited("p", 2), *below, a_node("n"), holder, waiting, config=config)
    assert report["quota"] == {GPU: {"asked": "2", "used": "0", "limit": "1", "missing": "1"}}
