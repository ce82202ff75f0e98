"""Results on standard output: JSON by contract, tables as kubectl prints them."""

import argparse
import json
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.display.figures import Figures
    from core.refusal import Refusal

_GAP = 3
_MARKS = frozenset({"Mn", "Me"})
_WIDE = frozenset({"W", "F"})
LINE = 110
"""The columns of a long text."""
EMPTY = "<none>"
"""What a cell without content shows."""


def add_argument(parser: argparse.ArgumentParser, *formats: str) -> None:
    """`-o FORMAT`; the first one is the default."""
    parser.add_argument(
        "-o", "--output", choices=formats, default=formats[0], help=f"output format (default {formats[0]})"
    )


def print_json(value: object) -> None:
    """One JSON value, indented, in the order in which it was built."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_document(form: str, value: object) -> None:
    """One value as `json` or `yaml`."""
    if form == "json":
        print_json(value)
        return
    from cli import yamltext

    # By way of JSON nothing stands twice as the same object, which YAML would write as an anchor that nobody reads.
    copied = json.loads(json.dumps(value, allow_nan=False))
    print(yamltext.write(copied), end="")


def print_names(names: Iterable[str], kind: str = "") -> None:
    """`-o name`: one a line, behind the `kind` as for kubectl where there is one."""
    head = f"{kind}/" if kind else ""
    for name in names:
        print(f"{head}{printable(name)}")


def moment(seconds: int) -> str:
    """A time in seconds since 1970 as the API writes it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def why(refusal: "Refusal | None") -> dict[str, str]:
    """Why something waits or is refused, under the keys that all commands have for it; both empty where it is not."""
    return {"reason": refusal.code, "message": refusal.message} if refusal else {"reason": "", "message": ""}


def as_written(key: str, text: str) -> str:
    """An amount of memory in the largest unit in which it is whole, as people write it; anything else as it stands."""
    if key != "memory" or not text.isdigit() or int(text) == 0:
        return text
    amount, unit = int(text), ""
    for larger in ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"):
        if amount % 1024:
            break
        amount, unit = amount // 1024, larger
    return f"{amount}{unit}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, three blanks apart; the last one is not padded. Control characters are escaped."""
    cells = [list(header), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip_longest(*cells, fillvalue="")]
    lines = (
        "".join(cell + " " * (width + _GAP - _width(cell)) for cell, width in zip(row, widths, strict=False))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _width(text: str) -> int:
    """The columns of a terminal that a text takes: two for each wide letter, none for marks on the letter before."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def _cell(text: str) -> str:
    return printable(text) or EMPTY


def wrapped(first: str, text: str, below: str | None = None) -> list[str]:
    """A long text behind its first words; the lines below it begin with `below`, or are as far to the right."""
    rest = " " * len(first) if below is None else below
    return textwrap.wrap(text, LINE, initial_indent=first, subsequent_indent=rest)


def printable(text: str) -> str:
    """The text on one line, with everything that could move the cursor escaped: it may come from anybody's object."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


_SUMS = ("allocated", "reserved", "waiting")


def counted(names: Iterable[str]) -> dict[str, int]:
    """How often each of these occurs, by name: in the same order whichever comes first."""
    return dict(sorted(Counter(names).items()))


def amounts(milli: Mapping[str, int], *, zero: bool = False) -> dict[str, str]:
    """Thousandths as quantities, sorted by key; what is zero is left out unless it is to be told apart from absent."""
    from core.quantity import render_amounts

    return render_amounts(milli, zero=zero)


def figures(queue: "Figures") -> dict[str, Any]:
    """What a queue may use, uses, holds and waits for, as commands print it in JSON."""
    return {
        "quota": amounts(queue.quota, zero=True),
        "allocated": amounts(queue.allocated),
        "reserved": amounts(queue.reserved),
        "waiting": amounts(queue.waiting),
        "share": queue.share,
    }


def by_key(queue: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each key of a queue's quota and sums with its four cells; one empty row for a queue without any."""
    keys = sorted({key for part in ("quota", *_SUMS) for key in queue[part]})
    for key in keys:
        yield key, (queue["quota"].get(key, ""), *(queue[part].get(key, "0") for part in _SUMS))
    if not keys:
        yield "", ("", "", "", "")
