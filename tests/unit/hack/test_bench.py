"""Every benchmark runs and reports, on clusters too small to take time; no figure is judged here."""

import json
import os
import subprocess
from pathlib import Path

import orjson
import pytest

from core.plan.decision import Hold
from hack.bench import __main__ as bench
from hack.bench import admission, load, machine, memory, mgpu, quota, samples
from hack.bench.clock import bounded, in_turns
from hack.bench.effort import FULL, QUICK, Effort
from hack.bench.peers import BenchError, peer
from hack.bench.report import Row, Target, as_json, as_table
from kube.admission import wire

TINY = Effort(
    rounds=1,
    limit_s=20.0,
    requests=8,
    connections=2,
    waiting=40,
    queues=4,
    nodes=4,
    share_nodes=20,
    pods=60,
    pod_nodes=4,
    changes=20,
    share=0.002,
)
BY_THEMSELVES = ("stalls", "lifts", "cohort")
"""Tried in parts: each scene is a process of its own, and a control plane is no unit."""


def a_row(figure: float = 3.0, ratio: float = 1.5, target: Target | None = None, unit: str = "ms") -> Row:
    return Row(
        benchmark="demo",
        what="thing",
        figure=figure,
        floor=2.0,
        ratio=ratio,
        unit=unit,
        floor_is="less",
        target=target,
    )


def silent(_text: str) -> None:
    """Progress that nobody reads."""


@pytest.mark.parametrize("name", [name for name in bench.BENCHMARKS if name not in BY_THEMSELVES])
def test_every_benchmark_reports_a_figure_and_a_floor_for_each_row(name: str) -> None:
    rows = bench.BENCHMARKS[name](TINY, silent)
    assert rows
    for row in rows:
        assert row.benchmark == name
        assert row.figure >= 0
        assert row.floor >= 0
        assert row.floor_is
    assert len({row.what for row in rows}) == len(rows)


@pytest.mark.parametrize("run", [quota.run, memory.run])
def test_a_smaller_cluster_is_not_judged_by_the_targets_of_the_large_one(run: bench.Benchmark) -> None:
    assert all(row.reached is None for row in run(TINY, silent))


def test_the_body_of_a_pod_review_is_as_large_as_the_target_says() -> None:
    body = samples.pod_review(samples.training_pod("train").build())
    assert 5500 < len(body) < 6100
    assert wire.decode(body).kind == "Pod"


def test_the_quota_shapes_do_what_their_names_say() -> None:
    kinds = {
        shape.label: {
            decision.why.code if isinstance(decision, Hold) else "lifted"
            for decision in quota.Case(quota.filled(shape, TINY)).decisions()
        }
        for shape in quota.shapes(TINY)
    }
    assert kinds["no quota left"] == {"InsufficientScalarQuota"}
    assert kinds["quota for all"] == {"lifted"}
    assert kinds["1 in 10 waits for room"] == {"lifted", "NoFreeCard"}


def test_a_measurement_leaves_the_ledger_as_it_was() -> None:
    case = quota.Case(quota.filled(quota.shapes(TINY)[2], TINY))
    before = case.decisions()
    case.full_pass()
    case.longest_slice()
    case.freed_card()
    assert case.decisions() == before


def test_every_placement_problem_has_room() -> None:
    assert all(mgpu.has_room(state, parts) for case in mgpu.cases() for state, parts in case.problems)


def test_a_server_that_answers_otherwise_than_expected_is_not_measured() -> None:
    with peer("hack.bench.load") as loader, peer("hack.bench.servers", "bare") as server:
        order = admission.order(server, "/no-such-path", "", b"{}", TINY)
        with pytest.raises(BenchError, match="404"):
            admission.measured(loader, order)


def test_a_process_that_ends_by_itself_is_an_error() -> None:
    with (
        peer("hack.bench.servers", "no-such-kind") as server,
        pytest.raises(BenchError, match="exit status 2"),
    ):
        server.hear()


def test_a_refused_connection_is_told_in_the_tally() -> None:
    with peer("hack.bench.load") as loader, peer("hack.bench.servers", "bare") as server:
        heard = admission.order(server, "/echo", "", b"{}", TINY)
        gone = orjson.loads(orjson.dumps(heard)) | {"port": 1}
        with pytest.raises(BenchError, match="Error"):
            admission.measured(loader, load.Order(**gone))


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        (None, None),
        (Target("figure", "<", 3), False),
        (Target("figure", "<=", 3), True),
        (Target("figure", ">=", 4), False),
        (Target("ratio", "<", 2), True),
        (Target("ratio", ">=", 1.5), True),
    ],
)
def test_a_target_is_judged_on_what_it_bounds(target: Target | None, *, reached: bool | None) -> None:
    assert a_row(target=target).reached is reached


def test_the_table_names_floor_target_and_verdict() -> None:
    table = as_table([a_row(target=Target("figure", "<", 2)), a_row(figure=1234.5, unit="/s")])
    assert table.splitlines() == [
        "demo; the floor: less",
        "  what     figure  floor  ratio  target  reached",
        "  thing      3 ms   2 ms    1.5  < 2 ms  NO",
        "  thing  1,234 /s   2 /s    1.5  -       -",
    ]


def test_the_json_carries_the_same() -> None:
    (row,) = as_json([a_row(target=Target("ratio", "<=", 2))])
    assert row == {
        "benchmark": "demo",
        "what": "thing",
        "figure": 3.0,
        "floor": 2.0,
        "ratio": 1.5,
        "unit": "ms",
        "floorIs": "less",
        "target": "<= 2x",
        "reached": True,
    }


def test_figure_and_floor_are_measured_by_turns_and_the_ratio_within_each_turn() -> None:
    order: list[str] = []
    figures, floors = iter((10.0, 90.0, 20.0)), iter((5.0, 30.0, 20.0))

    def figure() -> float:
        order.append("figure")
        return next(figures)

    def floor() -> float:
        order.append("floor")
        return next(floors)

    found = in_turns(figure, floor, rounds=3, limit_s=60)
    assert order == ["floor", "figure"] * 3
    assert (found.figure, found.floor, found.ratio) == (20.0, 20.0, 2.0)


def test_at_least_one_round_is_measured_when_the_time_is_up() -> None:
    assert list(bounded(5, -1.0)) == [0]
    assert list(bounded(3, 60.0)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "arguments"),
    [((), ""), (("ONLY=stalls cohort", "ARGS=--quick"), "--only stalls cohort --quick")],
)
def test_make_narrows_what_is_measured(given: tuple[str, ...], arguments: str) -> None:
    command = ["make", "--no-print-directory", "-n", "-o", ".venv/.ready", "bench", *given]
    root = Path(__file__).parents[3]
    # Where the tests were begun by `make test ARGS=...`, these are handed down to every other make.
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "ARGS", "ONLY")}
    done = subprocess.run(
        command, cwd=root, env=clean, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split("hack.bench", 1)[1].strip() == arguments


@pytest.mark.parametrize(("flags", "status"), [((), 0), (("--check",), 1)])
def test_a_missed_target_fails_only_a_check(
    flags: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = a_row(target=Target("figure", "<", 1))
    monkeypatch.setattr(bench, "BENCHMARKS", {"demo": lambda *_: [missed]})
    assert bench.main(["--only", "demo", *flags]) == status
    captured = capsys.readouterr()
    assert "0 of 1 targets reached" in captured.out
    assert "demo ..." in captured.err


@pytest.mark.parametrize(("flags", "effort"), [((), FULL), (("--quick",), QUICK)])
def test_the_output_is_json_where_asked_for(
    flags: tuple[str, ...],
    effort: Effort,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[Effort] = []

    def measure(given: Effort, _progress: object) -> list[Row]:
        seen.append(given)
        return [a_row()]

    monkeypatch.setattr(bench, "BENCHMARKS", {"demo": measure})
    assert bench.main(["--only", "demo", "-o", "json", *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in told["rows"]] == ["thing"]
    assert told["machine"].keys() >= {"date", "commit", "python", "processors", "memory", "kernel", "load"}
    assert seen == [effort]


def test_the_facts_of_the_machine_are_told_in_words_without_what_it_does_not_tell() -> None:
    known = {
        "date": "2026-01-02",
        "python": "3.11.7",
        "processors": 2,
        "memory": 24.0,
        "kernel": "6.1",
        "load": 0.5,
    }
    rest = "Python 3.11.7, 2 processors{}, 24 GiB, kernel 6.1, load 0.5"
    assert machine.in_words({**known, "commit": "", "processor": ""}) == f"2026-01-02, {rest.format('')}"
    full = machine.in_words({**known, "commit": "abc", "processor": "Fast"})
    assert full == f"2026-01-02, commit abc, {rest.format(' (Fast)')}"


def test_a_failed_measurement_ends_the_run_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> list[Row]:
        raise BenchError("the server ended")

    monkeypatch.setattr(bench, "BENCHMARKS", {"demo": fail})
    assert bench.main(["--only", "demo"]) == 1
    assert capsys.readouterr().err.endswith("error: the server ended\n")
