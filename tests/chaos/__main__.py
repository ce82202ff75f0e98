"""`python -m tests.chaos --seed 1 --minutes 3`: random load under random faults, judged by the API server's audit log."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.checker import Verdict
from tests.chaos.plan import FAULTS, draw
from tests.chaos.run import Bed, carry_out, judged


def main() -> int:
    """Exit status: 0 without violations."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of which everything is drawn that is done")
    parser.add_argument(
        "--minutes", type=float, default=3.0, help="how long; rest afterwards takes a minute or two more"
    )
    parser.add_argument(
        "--only", nargs="*", choices=sorted(FAULTS), help="these faults alone; none: no faults"
    )
    parser.add_argument("--logs", type=Path, help="an empty folder for the logs of all processes")
    parser.add_argument(
        "--judge", type=Path, help="judge the logs of an earlier run in this folder, and do nothing else"
    )
    given = parser.parse_args()
    if given.judge:
        return _report(judged(given.judge), {})
    kinds = FAULTS if given.only is None else {kind: FAULTS[kind] for kind in given.only}
    plan = draw(given.seed, given.minutes * 60, kinds)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with Bed.made(say, given.logs) as bed:
        outcome = carry_out(bed, plan, say)
    print(f"seed {given.seed}, {given.minutes:g} minutes, at rest after {outcome.rest_s:.0f} s")
    if outcome.unrest:
        print(*outcome.unrest, sep="\n")
    return _report(
        outcome.verdict, {**dict.fromkeys((f"fault: {kind}" for kind in kinds), 0), **outcome.done}
    )


def _report(verdict: Verdict, done: Mapping[str, int]) -> int:
    # What was not covered is told as well: nothing was proved of it.
    for what, count in sorted({**done, **verdict.covered}.items()):
        print(f"{count:8} {what}")
    print(*verdict.violations or ["no violation"], sep="\n")
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
