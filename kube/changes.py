"""What whoever follows a collection is told of it, see kube.reflector."""

from dataclasses import dataclass

from kube.client import Json


@dataclass(frozen=True, slots=True)
class Upsert:
    """The object of this key exists, in this state. It may have been said before, in the same state."""

    key: str
    raw: Json


@dataclass(frozen=True, slots=True)
class Removed:
    """The object of this key is gone; an object that follows under the same key is another one."""

    key: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything that exists has been said: what was not, does not."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing new up to now."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything has been said that was stored when the version was read which `catch_up` was given."""


Event = Upsert | Removed | Listed | Bookmark | CaughtUp
