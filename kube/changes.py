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
class ListBegins:
    """A list is about to be asked for: what exists now is in it, unless it goes before that."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything that exists at this version has been said: what was not, does not. The version is empty where nothing is served."""

    version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing new up to this version."""

    version: str


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything has been said that was stored when the version was read which `catch_up` was given."""


Event = Upsert | Removed | ListBegins | Listed | Bookmark | CaughtUp
