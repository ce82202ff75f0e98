"""What one page shows: plain values, which travel as JSON. Amounts are quantities in text, moments in seconds since 1970."""

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pydantic import TypeAdapter, ValidationError


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reader asks for. `namespace` chooses among pods; `own` stands for it where a reader may not list those of all.

    The numbers are those of the pages of each table, from 1.
    """

    find: str = ""
    namespace: str = ""
    own: str = ""
    queues: int = 1
    waiting: int = 1
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Extent:
    """Which rows of a table are shown: from `first` (0 is the very first) on; `of` there are, after filtering."""

    first: int
    of: int


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One card, resource or DeviceClass of a queue; `quota` is empty where there is none."""

    key: str
    quota: str
    allocated: str
    reserved: str
    waiting: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue. `depth` is how many of its parents are above it in the table; of its keys `more` are not shown."""

    name: str
    state: str
    depth: int
    parent: str
    keys: tuple[KeyRow, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Queues:
    """`subtrees` says whether cards of a queue are those of all below it, too; devices always are."""

    rows: tuple[QueueRow, ...]
    extent: Extent
    subtrees: bool


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A pod that waits. `number` of `line` is its place, 0 where that may not be seen; `together` share it.

    `reason` is empty where no pass has come to the pod yet.
    """

    pod: str
    queue: str
    number: int
    line: int
    together: int
    asks: str
    since: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pods that wait; `namespace` is the one to which they are limited, empty for all."""

    rows: tuple[WaitingRow, ...]
    extent: Extent
    namespace: str


@dataclass(frozen=True, slots=True)
class CardRow:
    """Whole cards that a node has and that are in use there."""

    card: str
    used: int
    count: int


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One mGPU card, in hundredths of it and MiB."""

    index: int
    used: int
    core: int
    held: int
    memory: int


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with cards; of those, and of what they share, `more` are not shown."""

    name: str
    cards: tuple[CardRow, ...]
    shares: tuple[ShareRow, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes with cards."""

    rows: tuple[NodeRow, ...]
    extent: Extent


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a pod: `came`, `started` (it got its node), `ended` or `gone` (deleted)."""

    at: int
    what: str
    pod: str
    queue: str


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """Another quota of a queue; `what` says of each key what it was and is."""

    at: int
    queue: str
    what: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The last hour of pods: how many of each, and the latest. `namespace` as in Waiting.

    Pods that are gone and the latest quotas are known since `known`; 0 where nobody has looked.
    """

    since: int
    came: int
    started: int
    ended: int
    latest: tuple[Change, ...]
    namespace: str
    gone: int = 0
    known: int = 0
    quotas: tuple[QuotaChange, ...] = ()


@dataclass(frozen=True, slots=True)
class HoursRow:
    """Card-hours of a queue and a card: those of each day, all of them, and those of its quota where it has one."""

    queue: str
    card: str
    days: tuple[float, ...]
    used: float
    waited: float
    quota: float | None


@dataclass(frozen=True, slots=True)
class Hours:
    """Card-hours by day; `days` are dates (UTC), and `more` rows are not shown."""

    days: tuple[str, ...]
    through: int
    rows: tuple[HoursRow, ...]
    more: int


@dataclass(frozen=True, slots=True)
class View:
    """One page. A part is None where its reader may not see it, or nobody knows; `notes` say why."""

    taken: int
    source: str
    wish: Wish
    queues: Queues | None = None
    waiting: Waiting | None = None
    nodes: Nodes | None = None
    changes: Changes | None = None
    hours: Hours | None = None
    notes: tuple[str, ...] = field(default=())


class ViewError(ValueError):
    """What was to be a view is none; `str()` says where."""


_ERRORS: Final = 3


def read(body: bytes) -> View:
    """A view from JSON. Raises ViewError."""
    try:
        return _adapter().validate_json(body)
    except ValidationError as error:
        places = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)
        ]
        raise ViewError("; ".join(places[:_ERRORS])) from error


def prepare() -> None:
    """Builds what reads views, which takes some milliseconds, for who has no time to when one comes."""
    _adapter()


@cache
def _adapter() -> TypeAdapter[View]:
    return TypeAdapter(View)
