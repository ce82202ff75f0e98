"""Card-hours of the last days."""

from core.page.html.bars import bar
from core.page.html.marks import Markup, body, built, cell, head, moment, named, row, section, table, tag
from core.page.view import Hours, HoursRow
from core.steps import Steps


def hours(found: Hours) -> Steps[Markup]:
    """The part about card-hours; a bar is of the largest day in its row."""
    if not found.rows:
        return section("hours", "Card-hours", tag("p", "Nothing was used in the last days."))
    more = f" Not shown are {found.more:,} rows of which less was used." if found.more else ""
    rows = yield from built(_row(one, found.days) for one in found.rows)
    return section(
        "hours",
        "Card-hours",
        tag("p", "By day (UTC), up to ", moment(found.through), f".{more}", class_="note"),
        tag(
            "div",
            table(
                "Card-hours by queue, card and day",
                ("Queue", "Card", *found.days, "Used", "Of the quota", "Waited"),
                [body(rows)],
                "hours",
            ),
            class_="scroll",
            role="region",
            tabindex=0,
            aria_label="Card-hours by day",
        ),
    )


def _row(one: HoursRow, days: tuple[str, ...]) -> Markup:
    most = max(one.days, default=0.0)
    quota = f"{one.used / one.quota:.0%}" if one.quota else "no quota"
    return row(
        head(one.queue),
        cell(named(one.card), label="Card", class_="asks"),
        *(
            cell(tag("span", f"{used:,.1f}"), bar(most, used), label=day, class_="day")
            for day, used in zip(days, one.days, strict=False)
        ),
        cell(f"{one.used:,.1f}", label="Used", class_="number"),
        cell(quota, label="Of the quota", class_="number"),
        cell(f"{one.waited:,.1f}", label="Waited", class_="number"),
    )
