"""`python -m hack.bench [--only NAME...] [--quick] [--check] [-o table|json]`: measures, and prints the results."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson

from hack.bench import (
    admission,
    cohort,
    equivalents,
    extender,
    growth,
    levels,
    lifts,
    machine,
    memory,
    mgpu,
    quota,
    review,
    scale,
    stalls,
)
from hack.bench.effort import FULL, QUICK, Effort
from hack.bench.peers import BenchError
from hack.bench.report import Row, as_json, as_table

Progress = Callable[[str], None]
Benchmark = Callable[[Effort, Progress], list[Row]]

BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    "webhook": admission.webhook,
    "binding": admission.binding,
    "review": review.run,
    "quota": lambda effort, progress: [
        row for part in (quota, levels, equivalents) for row in part.run(effort, progress)
    ],
    "mgpu": mgpu.run,
    "extender": extender.run,
    "memory": memory.run,
    "growth": growth.run,
    "stalls": stalls.run,
    "lifts": lifts.run,
    "cohort": cohort.run,
}
ON_DEMAND: Final[Mapping[str, Benchmark]] = {"cohorts": cohort.run_all, "scale": scale.run}
"""Those that take too long to be run unless they are named."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is asked for. 0, also when a target is missed; with `--check` 1 then; 1 when measuring fails."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[*BENCHMARKS, *ON_DEMAND],
        default=list(BENCHMARKS),
        help=f"{', '.join(BENCHMARKS)}; or what is not run by itself: {', '.join(ON_DEMAND)}",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds, and a smaller cluster where it takes long"
    )
    parser.add_argument("--check", action="store_true", help="exit status 1 when a target is missed")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    try:
        rows = measure(options.only, QUICK if options.quick else FULL)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(rendered(rows, options.output))
    return int(options.check and any(row.reached is False for row in rows))


def measure(names: Sequence[str], effort: Effort) -> list[Row]:
    """The rows of the named benchmarks; progress goes to standard error."""
    rows: list[Row] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += {**BENCHMARKS, **ON_DEMAND}[name](effort, _say)
    return rows


def rendered(rows: Sequence[Row], output: str) -> str:
    """The results in the given form, with what is to be known of the machine."""
    facts = machine.facts()
    if output == "json":
        return orjson.dumps({"machine": facts, "rows": as_json(rows)}, option=orjson.OPT_INDENT_2).decode()
    missed = sum(row.reached is False for row in rows)
    judged = sum(row.reached is not None for row in rows)
    return f"{as_table(rows)}\n\n{judged - missed} of {judged} targets reached ({machine.in_words(facts)})"


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
