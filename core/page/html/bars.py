"""Bars for the eye. What they show always stands beside them in words, so readers of a screen are not told twice."""

from core.page.html.marks import Markup, tag

_WIDTH = 100


def bar(whole: float, used: float, reserved: float = 0) -> Markup:
    """How much of something is used, and how much more is reserved; anything at all is seen, and beyond it all is one colour."""
    track = tag("rect", class_="track", width=_WIDTH, height=10)
    if used + reserved > whole:
        parts = [tag("rect", class_="over", width=_WIDTH, height=10)]
    else:
        first, both = _part(used, whole), _part(used + reserved, whole)
        parts = [tag("rect", class_="used", width=first, height=10)]
        if reserved:
            parts.append(tag("rect", class_="reserved", x=first, width=max(1, both - first), height=10))
    return tag(
        "svg",
        track,
        *parts,
        class_="bar",
        viewBox=f"0 0 {_WIDTH} 10",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def _part(amount: float, whole: float) -> int:
    return max(1 if amount else 0, int(amount * _WIDTH / whole)) if whole else 0
