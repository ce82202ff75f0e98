"""`python -m hack.panels --prometheus URL --out DIR`: draws every panel of the dashboards, and says which show nothing."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from hack.dashboards import FOLDER
from hack.panels.dashboard import PanelError, drawn
from hack.panels.units import UnknownUnitError
from hack.prometheus import Api, QueryError


def main(arguments: list[str] | None = None) -> int:
    """Write the pictures; the exit status is 1 where a panel cannot be drawn."""
    parser = argparse.ArgumentParser(prog="python -m hack.panels", description=__doc__)
    parser.add_argument("--prometheus", metavar="URL", required=True, help="which Prometheus to ask")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="where the pictures go")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="how much of the past they show (default 60)"
    )
    parser.add_argument(
        "--queue", default=".*", help="a pattern for the choice of queues (default all of them)"
    )
    parser.add_argument(
        "--dashboards", metavar="DIR", type=Path, default=FOLDER, help="where the dashboards are"
    )
    options = parser.parse_args(arguments)
    now = time.time()
    try:
        for told in write(
            Api(options.prometheus),
            options.out,
            now - options.minutes * 60,
            now,
            options.queue,
            options.dashboards,
        ):
            print(told)
    except (QueryError, PanelError, UnknownUnitError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def write(
    api: Api, out: Path, start: float, end: float, queue: str = ".*", folder: Path = FOLDER
) -> Iterator[str]:
    """Write them into a folder, of a time in seconds since 1970, and tell of each. Raises what `drawn` raises."""
    out.mkdir(parents=True, exist_ok=True)
    for picture in drawn(folder, api, start, end, queue):
        file = out / f"{picture.name}.svg"
        file.write_text(picture.svg, "utf-8")
        yield f"{file}{'  (no data)' if picture.empty else ''}"


if __name__ == "__main__":
    sys.exit(main())
