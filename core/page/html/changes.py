"""What has changed in the last hour."""

from typing import Final

from core.page.html.marks import Markup, body, cell, counted, head, moment, named, row, section, table, tag
from core.page.view import Changes

_WORDS: Final = {"came": "came", "started": "got its node", "ended": "ended"}


def changes(found: Changes) -> Markup:
    """The part about the last hour."""
    where = f" of namespace {found.namespace}" if found.namespace else ""
    told = f"{counted(found.came, 'pod')}{where} came, {found.started:,} got a node, {found.ended:,} ended."
    if not found.latest:
        return section("changes", "The last hour", tag("p", f"Nothing has changed{where}."))
    return section(
        "changes",
        "The last hour",
        tag("p", told, " Pods that were deleted since are not among them.", class_="note"),
        table(
            "The latest changes",
            ("Pod", "What", "Queue", "When"),
            [
                body(
                    row(
                        head(one.pod),
                        cell(_WORDS.get(one.what, one.what), label="What"),
                        cell(named(one.queue), label="Queue"),
                        cell(moment(one.at), label="When", class_="number"),
                    )
                    for one in found.latest
                )
            ],
        ),
    )
