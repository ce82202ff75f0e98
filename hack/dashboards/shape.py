"""What dashboards are made of."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: its title, what it says, and its queries, each with the name of its lines."""

    title: str
    description: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    stacked: bool = False
    width: int = 12


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody may choose among: the values of a label of a metric, by default all of them."""

    name: str
    title: str
    metric: str
    label: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of them, with choices that its queries name, as `$queue`."""

    name: str
    title: str
    panels: Sequence[Panel]
    choices: Sequence[Choice] = ()


MOST = 15
"""Of several hundred queues so many are shown side by side: those that stand out."""
