"""Which pods and queues of a long table are shown, and amounts as people write them."""

import json
from pathlib import Path

import pytest
import yaml

from cli.output import as_written
from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Outcome, Run

PODS = [
    a_pod("a").gpu(1).card("A").in_queue("q").gated().put("metadata", "labels", value={"team": "nlp"}),
    a_pod("b").gpu(1).card("A").in_queue("r").gated(),
    a_pod("c").gpu(1).card("A").in_queue("q").gated().put("metadata", "namespace", value="other"),
    a_pod("cpu"),
]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    queues = [a_queue(name).cards({"A": 8}).capability(memory="4Ti") for name in "qr"]
    items = [thing.build() for thing in (a_node("n").card("A", 8), *queues, *PODS)]
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def shown(outcome: Outcome) -> list[str]:
    assert outcome.status == 0
    return [line.removeprefix("pod/") for line in outcome.out.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "pods"),
    [
        ((), ["ml/a", "ml/b", "other/c"]),
        (("-n", "ml"), ["ml/a", "ml/b"]),
        (("--queue", "q"), ["ml/a", "other/c"]),
        (("--queue", "q", "--queue", "r"), ["ml/a", "ml/b", "other/c"]),
        (("-l", "team in (nlp, cv)"), ["ml/a"]),
        (("-l", "!team"), ["ml/b", "other/c"]),
        (("-n", "ml", "--queue", "q"), ["ml/a"]),
        (("-n", "nowhere"), []),
        (("--limit", "2"), ["ml/a", "ml/b"]),
    ],
)
def test_the_pods_of_a_plan(run: Run, state: Path, arguments: tuple[str, ...], pods: list[str]) -> None:
    outcome = run("plan", "--state", state, "-o", "name", *arguments)
    assert shown(outcome) == pods
    assert outcome.err == ("note: 1 more pod is not shown (--limit)\n" if "--limit" in arguments else "")
    assert [f"{key} " in run("plan", "--state", state, *arguments).out for key in pods] == [True] * len(pods)


def test_what_is_decided_does_not_depend_on_what_is_shown(run: Run, state: Path) -> None:
    whole = json.loads(run("plan", "--state", state, "-o", "json").out)
    part = json.loads(run("plan", "--state", state, "-o", "json", "--queue", "q", "-n", "other").out)
    assert part["pods"] == {"other/c": whole["pods"]["other/c"]}
    assert part["queues"] == {"q": whole["queues"]["q"]}
    assert yaml.safe_load(run("plan", "--state", state, "-o", "yaml").out) == whole


def test_the_queues(run: Run, state: Path) -> None:
    assert run("queues", "--state", state, "-o", "name").out == "queue/q\nqueue/r\n"
    found = run("queues", "--state", state, "-o", "yaml", "--queue", "r")
    assert list(yaml.safe_load(found.out)) == ["r"]
    assert "4Ti" in run("queues", "--state", state, "-o", "wide").out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan", "--limit", "0"), "--limit: must be a whole number above 0, not '0'"),
        (("plan", "--limit", "9" * 50), "must be a whole number above 0"),
        (("plan", "-l", "a in ("), "error: -l 'a in ('"),
        (("plan", "--queue", "z"), "error: there is no queue z, and no pod names it"),
        (("queues", "--queue", "z"), "error: there is no queue z, and no pod names it"),
    ],
)
def test_what_cannot_be_chosen(run: Run, state: Path, arguments: tuple[str, ...], told: str) -> None:
    outcome = run(*arguments, "--state", state)
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err


@pytest.mark.parametrize(
    ("key", "text", "written"),
    [
        ("memory", str(4 * 2**40), "4Ti"),
        ("memory", str(1536 * 2**20), "1536Mi"),
        ("memory", "1000000", "1000000"),
        ("memory", "0", "0"),
        ("memory", "1500m", "1500m"),
        ("cpu", "4096", "4096"),
    ],
)
def test_memory_is_shown_as_people_write_it(key: str, text: str, written: str) -> None:
    assert as_written(key, text) == written
