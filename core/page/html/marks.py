"""Pieces of HTML. Whatever is not markup already is escaped where it is put in, so that forgetting it is no way to get in."""

import html
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from core.steps import Pace, Steps

_STEP: Final = 3
"""Rows that are made in about half a millisecond."""
_VOID: Final = frozenset({"br", "input", "link", "meta"})
_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400


class Markup(str):
    """Text that is HTML already. Made by `tag` and `joined`, and of nothing that comes from an object."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Any text, as text: what could turn its direction or hide is escaped as Python writes it."""
    plain = (
        value
        if value.isprintable()
        else "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in value
        )
    )
    return Markup(html.escape(plain, quote=True))


def tag(kind: str, /, *children: str, **attributes: str | int | bool) -> Markup:
    """An element. In names of attributes `_` stands for `-` and is taken off the end; one that is False is left out."""
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not False
    )
    if kind in _VOID:
        return Markup(f"<{kind}{shown}>")
    return Markup(f"<{kind}{shown}>{joined(children)}</{kind}>")


def joined(parts: Iterable[str]) -> Markup:
    """One behind the other."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def named(value: str) -> Markup:
    """A name out of an object, in a direction of its own."""
    return tag("bdi", value)


def cell(*children: str, label: str = "", **attributes: str | int | bool) -> Markup:
    """A cell; `label` stands before it on narrow screens, where no header does."""
    more: dict[str, str | int | bool] = {"data_label": label} if label else {}
    return tag("td", *children, role="cell", **more, **attributes)


def row(*cells: Markup) -> Markup:
    """A row of a table."""
    return tag("tr", *cells, role="row")


def head(value: str, **attributes: str | int | bool) -> Markup:
    """The cell that a row is about."""
    return tag("th", named(value), scope="row", role="rowheader", **attributes)


def table(caption: str, columns: Iterable[str], bodies: Iterable[Markup], kind: str = "") -> Markup:
    """A table with its header. The roles stand there since a narrow screen lays it out as blocks, which takes them away."""
    headers = [tag("th", column, scope="col", role="columnheader") for column in columns]
    return tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", row(*headers), role="rowgroup"),
        *bodies,
        role="table",
        class_=kind,
    )


def body(rows: Iterable[Markup]) -> Markup:
    """Rows that belong together."""
    return tag("tbody", *rows, role="rowgroup")


def built(parts: Iterable[Markup]) -> Steps[list[Markup]]:
    """All of them, with pauses: each is made when it is come to."""
    found: list[Markup] = []
    pace = Pace(_STEP)
    for part in parts:
        found.append(part)
        if pace.due():
            yield
    return found


def section(name: str, title: str, *children: str) -> Markup:
    """A part of the page, a landmark by its title."""
    return tag(
        "section", tag("h2", title, id=f"{name}-title"), *children, id=name, aria_labelledby=f"{name}-title"
    )


def moment(seconds: int) -> Markup:
    """A time in seconds since 1970."""
    at = datetime.fromtimestamp(seconds, UTC)
    return tag("time", f"{at:%Y-%m-%d %H:%M:%S} UTC", datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}")


def age(seconds: int) -> str:
    """How long something has taken, in its two largest units."""
    if seconds < _MINUTE:
        return f"{max(0, seconds)} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`, `10,000 pods`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
