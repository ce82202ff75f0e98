"""What has changed in the last hour."""

from typing import Final

from core.page.html.marks import (
    Markup,
    body,
    built,
    cell,
    counted,
    head,
    moment,
    named,
    row,
    section,
    table,
    tag,
)
from core.page.view import Change, Changes
from core.steps import Steps

_WORDS: Final = {"came": "came", "started": "got its node", "ended": "ended"}


def changes(found: Changes) -> Steps[Markup]:
    """The part about the last hour."""
    where = f" of namespace {found.namespace}" if found.namespace else ""
    told = f"{counted(found.came, 'pod')}{where} came, {found.started:,} got a node, {found.ended:,} ended."
    if not found.latest:
        return section("changes", "The last hour", tag("p", f"Nothing has changed{where}."))
    rows = yield from built(_row(one) for one in found.latest)
    return section(
        "changes",
        "The last hour",
        tag("p", told, " Pods that were deleted since are not among them.", class_="note"),
        table(
            "The latest changes",
            ("Pod", "What", "Queue", "When"),
            [body(rows)],
        ),
    )


def _row(one: Change) -> Markup:
    return row(
        head(one.pod),
        cell(_WORDS.get(one.what, one.what), label="What"),
        cell(named(one.queue), label="Queue"),
        cell(moment(one.at), label="When", class_="number"),
    )
