"""Long tables of nodes, cards and queues: by labels, by namespace, so many rows, and in every form."""

import json
from pathlib import Path

import pytest
import yaml

from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Outcome, Run

CROSS = "crossQuota: {gpuResourceNames: ['nvidia.com/gpu'], quota: {cpu: 4}}\n"
GUESTS = [a_pod(f"cpu{number}", namespace="web").request("cpu", 1).bound_to("n1") for number in range(6)]
POD = a_pod("waits").gpu(1).card("A").in_queue("q").gated().put("spec", "priority", value=7)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    nodes = [
        a_node(name).card(card, 8).put("metadata", "labels", "pool", value=pool)
        for name, card, pool in (("n1", "A", "train"), ("n2", "B", "serve"), ("n3", "A", "serve"))
    ]
    queues = [
        a_queue(name).cards({"A": 8}).put("metadata", "labels", value={"team": team})
        for name, team in (("q", "nlp"), ("r", "cv"), ("s", "cv"))
    ]
    running = [
        a_pod(f"p{number}", namespace="ml").gpu(1).card("A").in_queue("q").assigned({"A": 1}).bound_to("n1")
        for number in range(6)
    ]
    other = a_pod("other", namespace="web").gpu(1).card("B").in_queue("q").assigned({"B": 1}).bound_to("n2")
    items = [thing.build() for thing in (*nodes, *queues, *running, other, POD, *GUESTS)]
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (tmp_path / "settings.yaml").write_text(CROSS)
    return path


def told(run: Run, state: Path, command: str, *arguments: str) -> Outcome:
    settings = ("--config", str(state.parent / "settings.yaml")) if command == "cross" else ()
    target = ("ml/waits",) if command == "place" else ()
    outcome = run(command, *target, "--state", state, *settings, *arguments)
    assert outcome.status == 0, outcome.err
    return outcome


@pytest.mark.parametrize(
    ("command", "arguments", "names"),
    [
        ("gpus", (), ["node/n1", "node/n2", "node/n3"]),
        ("gpus", ("-l", "pool=serve"), ["node/n2", "node/n3"]),
        ("gpus", ("-n", "ml"), ["node/n1"]),
        ("gpus", ("-n", "web", "-l", "pool=train"), []),
        ("gpus", ("--limit", "2"), ["node/n1", "node/n2"]),
        ("cross", (), ["node/n1", "node/n2", "node/n3"]),
        ("cross", ("-l", "pool in (train)"), ["node/n1"]),
        ("cross", ("--limit", "1"), ["node/n1"]),
        ("place", (), ["node/n1", "node/n3"]),
        ("place", ("-l", "pool=serve"), ["node/n3"]),
        ("cards", (), ["A", "B"]),
        ("cards", ("-l", "pool=train"), ["A"]),
        ("cards", ("-l", "!pool"), []),
        ("queues", (), ["queue/q", "queue/r", "queue/s"]),
        ("queues", ("-l", "team=cv"), ["queue/r", "queue/s"]),
        ("queues", ("-l", "team=cv", "--limit", "1"), ["queue/r"]),
        ("queues", ("-l", "team=cv", "--queue", "s"), ["queue/s"]),
    ],
)
def test_the_rows_that_are_asked_for(
    run: Run, state: Path, command: str, arguments: tuple[str, ...], names: list[str]
) -> None:
    outcome = told(run, state, command, "-o", "name", *arguments)
    assert outcome.out.splitlines() == names
    limited = "--limit" in arguments
    assert (" not shown (--limit)" in outcome.err) is limited


@pytest.mark.parametrize("command", ["gpus", "cross", "place", "cards", "queues", "plan"])
def test_yaml_says_what_json_says(run: Run, state: Path, command: str) -> None:
    as_json = json.loads(told(run, state, command, "-o", "json").out)
    assert yaml.safe_load(told(run, state, command, "-o", "yaml").out) == as_json
    assert as_json


def test_answers_are_told_in_yaml_as_well(run: Run, state: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "new.json"
    manifest.write_text(json.dumps(a_pod("new").gpu(1).card("A").in_queue("q").build()))
    commands = (("explain", "ml/waits"), ("can-run", str(manifest)), ("advise", "q"), ("verify",))
    for command in commands:
        as_json = json.loads(run(*command, "--state", state, "-o", "json").out)
        assert yaml.safe_load(run(*command, "--state", state, "-o", "yaml").out) == as_json, command


@pytest.mark.parametrize(("command", "last"), [("gpus", "ml/p5 (1)"), ("cross", "web/cpu5 1")])
def test_wide_names_every_pod(run: Run, state: Path, command: str, last: str) -> None:
    assert last not in told(run, state, command).out
    assert "more" in told(run, state, command).out
    wide = told(run, state, command, "-o", "wide").out
    assert last in wide
    assert "more" not in wide


def test_a_wide_plan_shows_priority_age_node_and_what_pods_name(run: Run, state: Path) -> None:
    header, *rows = told(run, state, "plan", "-o", "wide", "--queue", "q").out.splitlines()
    assert header.split("   ")[0].strip() == "POD"
    assert [part.strip() for part in header.split("   ") if part.strip()] == [
        "POD",
        "QUEUE",
        "DECISION",
        "CARD NAME",
        "ASSIGNED",
        "PRIORITY",
        "CREATED",
        "NODE",
        "REASON",
        "MESSAGE",
    ]
    (waits,) = (row for row in rows if row.startswith("ml/waits"))
    created = POD.build()["metadata"]["creationTimestamp"]
    assert waits.split()[1:7] == ["q", "lift", "A", "1", "A", "7"]
    assert created in waits
    (runs,) = (row for row in rows if row.startswith("ml/p0"))
    assert "n1" in runs.split()


@pytest.mark.parametrize("command", ["gpus", "cross", "place", "cards", "queues"])
def test_a_selector_that_is_none_is_wrong_usage(run: Run, state: Path, command: str) -> None:
    target = ("ml/waits",) if command == "place" else ()
    outcome = run(command, *target, "--state", state, "-l", "a in (")
    assert (outcome.status, outcome.out) == (2, "")
    assert "error: -l 'a in ('" in outcome.err
