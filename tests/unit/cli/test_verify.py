"""`cardquota verify --state`: status and records against the pods."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli import books, soundness
from cli import state as states
from cli.sight import Sight
from core.plan.offline import plan
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.cli.conftest import Outcome, Run

NODES = [a_node("n1").card("A", 8).build(), a_node("n2").card("B", 8).build()]
QUEUE = a_queue("q").cards({"A": 8}).allocated({"A": "2", "cpu": "4", "nvidia.com/gpu": "2"})
RUNS = a_pod("runs").gpu(2).card("A").in_queue("q").charged("q").assigned({"A": 2}).bound_to("n1")


WAITS = a_pod("runs").gpu(2).card("A").in_queue("q").assigned({"A": 2}).gated()


def verify(run: Run, tmp_path: Path, *objects: dict[str, Any]) -> Outcome:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES, *objects]}))
    return run("verify", "--state", path, "-o", "json")


def wrong(outcome: Outcome) -> list[str]:
    checks = json.loads(outcome.out)["checks"]
    return [check["found"] for check in checks if check["result"] == "wrong"]


def test_sound_books(run: Run, tmp_path: Path) -> None:
    outcome = verify(run, tmp_path, QUEUE.build(), RUNS.build())
    assert (outcome.status, outcome.err) == (0, "")
    assert json.loads(outcome.out) == {
        "checks": [
            {"check": "queue status", "result": "ok", "found": "1 queue shows what its pods use"},
            {
                "check": "records",
                "result": "ok",
                "found": "those of 1 pod that was let in agree with it",
            },
        ]
    }
    text = run("verify", "--state", tmp_path / "state.json").out
    assert text.splitlines()[1] == "queue status   ok       1 queue shows what its pods use"


@pytest.mark.parametrize(
    ("allocated", "told"),
    [
        ({"A": "3"}, "queue q: status.allocated shows 3 of A, and its pods use 2"),
        ({}, "queue q: status.allocated shows 0 of A, and its pods use 2"),
        ({"A": "2", "B": "1"}, "queue q: status.allocated shows 1 of B, and its pods use 0"),
        ({"A": "two"}, "queue q: status.allocated shows two of A, and its pods use 2"),
    ],
)
def test_a_status_key_that_was_edited(run: Run, tmp_path: Path, allocated: dict[str, str], told: str) -> None:
    outcome = verify(run, tmp_path, QUEUE.allocated(allocated).build(), RUNS.build())
    assert outcome.status == 1
    assert wrong(outcome) == [told]


def by_hand(builder: Any, *, status: bool = False) -> dict[str, Any]:
    """As somebody writes it into a file: nothing that an API server or a controller would have added."""
    raw: dict[str, Any] = builder.build()
    for key in ("uid", "creationTimestamp"):
        raw["metadata"].pop(key, None)
    if not status and raw["kind"] == "Queue":
        del raw["status"]
    return raw


NEVER = "the queue was never stored, so no controller has written a status"
FEW = "one of its pods was never stored, so no controller has counted it"


@pytest.mark.parametrize(
    ("queue", "pod", "results"),
    [
        (by_hand(QUEUE), RUNS.build(), {"unknown": [f"shows 0 of A, and its pods use 2; {NEVER}"]}),
        (by_hand(QUEUE), by_hand(RUNS), {"unknown": [f"shows 0 of A, and its pods use 2; {NEVER}"]}),
        (by_hand(a_queue("q").cards({"A": 8}), status=True), RUNS.build(), {"unknown": [NEVER]}),
        (by_hand(QUEUE, status=True), RUNS.build(), {"ok": ["1 queue shows"]}),
        (by_hand(QUEUE.allocated({"A": "3"}), status=True), RUNS.build(), {"wrong": ["shows 3 of A"]}),
        (by_hand(QUEUE), by_hand(WAITS), {"ok": ["1 queue shows"]}),
        (QUEUE.allocated({}).build(), RUNS.build(), {"wrong": ["shows 0 of A, and its pods use 2"]}),
        (a_queue("q").cards({"A": 8}).build(), RUNS.build(), {"wrong": ["shows 0 of A"]}),
        (QUEUE.allocated({}).build(), by_hand(RUNS), {"unknown": [FEW]}),
        (QUEUE.build(), by_hand(RUNS), {"ok": ["1 queue shows"]}),
    ],
    ids=[
        "by hand, without status",
        "all by hand",
        "by hand, with nothing but its state",
        "by hand, with the status that should be there",
        "by hand, with another one",
        "by hand, and nobody uses anything",
        "stored, and nothing shown",
        "stored, and no status",
        "stored, and a pod added by hand",
        "stored, and right with the pod",
    ],
)
def test_a_status_is_missed_only_where_a_controller_would_have_written_one(
    run: Run, tmp_path: Path, queue: Any, pod: Any, results: dict[str, list[str]]
) -> None:
    """Of a dump everything is stored; of what somebody wrote by hand nothing was."""
    outcome = verify(run, tmp_path, queue, pod)
    checks = [one for one in json.loads(outcome.out)["checks"] if one["check"] == "queue status"]
    assert [one["result"] for one in checks] == list(results)
    for one in checks:
        (told,) = results[one["result"]]
        assert told in one["found"]
    assert outcome.status == ("wrong" in results)


SHARE = a_pod("share").mgpu(core=50, memory=1024).in_queue("q").charged("q").bound_to("m")
UNCHARGED = a_pod("runs").gpu(2).card("A").in_queue("q").assigned({"A": 2}).bound_to("n1")
STAMPED = "until a leader writes it the queue may change under the pod; see that one leads"
MGPU = a_node("m").label("vke.node.gpu.schedule", "mgpu").mgpu(2, memory=8192)


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (RUNS.assigned({"A": 1}), "cardquota.io/assigned says 1 of A, and the pod asks for 2"),
        (RUNS.assigned({"B": 2}), "cardquota.io/assigned says 2 of B, and the pod names A"),
        (RUNS.annotation("cardquota.io/assigned", "x"), "cardquota.io/assigned cannot be read: x"),
        (
            RUNS.charged("z"),
            "cardquota.io/queue names queue z, which does not exist: create it, or delete the pod",
        ),
        (UNCHARGED, "has cardquota.io/assigned and no cardquota.io/queue: " + STAMPED),
        (UNCHARGED.in_queue("z"), "has cardquota.io/assigned and no cardquota.io/queue: " + STAMPED),
        (
            UNCHARGED.annotation("cardquota.io/gang", "1").annotation("cardquota.io/node", "n1"),
            "has cardquota.io/assigned, cardquota.io/gang, cardquota.io/node and no cardquota.io/queue: "
            + STAMPED,
        ),
        (SHARE, "bound to node m without a complete record of its cards"),
    ],
    ids=[
        "count",
        "card",
        "garbage",
        "a queue that is gone",
        "no queue",
        "no queue, and none that it could be",
        "several records",
        "no cards of a share",
    ],
)
def test_a_record_that_was_edited(run: Run, tmp_path: Path, pod: PodBuilder, told: str) -> None:
    outcome = verify(run, tmp_path, QUEUE.build(), MGPU.build(), pod.build())
    assert outcome.status == 1
    assert any(told in line and line.startswith("pod ml/") for line in wrong(outcome)), wrong(outcome)


@pytest.mark.parametrize("pod", [WAITS, UNCHARGED.phase("Succeeded")], ids=["waits", "ended"])
def test_who_holds_nothing_needs_no_queue_on_record(run: Run, tmp_path: Path, pod: PodBuilder) -> None:
    assert not [
        line for line in wrong(verify(run, tmp_path, QUEUE.build(), pod.build())) if "pod" in line[:4]
    ]


def test_a_pod_from_before_the_installation_has_no_record_to_miss(run: Run, tmp_path: Path) -> None:
    before = a_pod("runs").gpu(2).card("A").in_queue("q").bound_to("n1")
    assert verify(run, tmp_path, QUEUE.build(), before.build()).status == 0


# -- healthy states --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wish:
    """A pod, and how far it has come at the most: waiting, lifted, bound, ended."""

    queue: str
    cards: str
    count: int
    stage: int


@dataclass
class World:
    """Queues and pods as a controller leaves them."""

    quotas: dict[str, dict[str, int]]
    wishes: list[Wish]
    objects: list[dict[str, Any]] = field(default_factory=list)

    def live(self) -> list[dict[str, Any]]:
        gated = [self._pod(number, wish).gated() for number, wish in enumerate(self.wishes)]
        queues = [a_queue(name).cards(quota) for name, quota in self.quotas.items()]
        before = states.build([*NODES, *(one.build() for one in (*queues, *gated))], "test")
        decided = plan(books.of(before, Settings()), before.pods).pods
        pods = [
            self._went_on(number, wish, dict(decided[f"ml/p{number}"].assigned or {}))
            for number, wish in enumerate(self.wishes)
        ]
        state = states.build([*NODES, *(pod.build() for pod in pods)], "test")
        used = soundness.figures(Sight(state, Settings()))
        assert used is not None, "all is seen"
        shown = [
            queue.allocated(
                {"cpu": "3"}
                | {card: str(milli // 1000) for (name, card), milli in used.items() if name == queue_name}
            )
            for queue_name, queue in zip(self.quotas, queues, strict=True)
        ]
        return [*NODES, *(one.build() for one in (*shown, *pods))]

    @staticmethod
    def _pod(number: int, wish: Wish) -> PodBuilder:
        return a_pod(f"p{number}").gpu(wish.count).card(wish.cards).in_queue(wish.queue)

    def _went_on(self, number: int, wish: Wish, assigned: dict[str, int]) -> PodBuilder:
        pod = self._pod(number, wish)
        if not assigned or wish.stage == 0:
            return pod.gated()
        pod = pod.assigned(assigned).charged(wish.queue)
        if wish.stage > 1:
            pod = pod.bound_to("n1" if "A" in assigned else "n2")
        return pod.phase("Succeeded") if wish.stage > 2 else pod


QUOTAS = st.fixed_dictionaries({card: st.integers(0, 6) for card in "AB"})
WISHES = st.builds(
    Wish,
    st.sampled_from(["q", "r"]),
    st.sampled_from(["A", "B", "A|B"]),
    st.integers(1, 3),
    st.integers(0, 3),
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.fixed_dictionaries({"q": QUOTAS, "r": QUOTAS}), st.lists(WISHES, max_size=8))
def test_nothing_wrong_is_said_of_healthy_states(quotas: dict[str, Any], wishes: list[Wish]) -> None:
    state = states.build(World(quotas, wishes).live(), "test")
    found = soundness.of(state, Sight(state, Settings()))
    assert [verdict.text for verdict in found if verdict.result != "ok"] == []


def texts(found: Iterable[Any]) -> list[str]:
    return [verdict.text for verdict in found]


def test_a_thousand_wrong_places_are_twenty_lines_and_their_number() -> None:
    objects = [
        RUNS.uid(f"u{number}").put("metadata", "name", value=f"p{number}").assigned({"A": 1}).build()
        for number in range(30)
    ]
    state = states.build([*NODES, QUEUE.build(), *objects], "test")
    found = soundness.of(state, Sight(state, Settings()))
    assert texts(found)[-1] == "and 10 more"
