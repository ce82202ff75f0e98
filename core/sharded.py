"""A dictionary that never grows in one piece."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from itertools import chain
from typing import Any, Final, TypeVar

from core.steps import Steps, each

V = TypeVar("V")

SHARDS: Final = 64
WHOLE: Final = 5461
"""So many keys are in one piece: with one more a dictionary would move to its next size. To be dealt out they take 0.8 ms."""


class Sharded(dict[str, V]):
    """Values by key, in many dictionaries where it is large: for what is kept of every pod, or of every queue that pods name.

    A dictionary moves whole when it grows: 5 ms at 87,382 keys, 50 where the machine has yet to find memory for it; and all
    that have the same keys grow at the same pod. Each of these grows at a moment of its own, and moves a 64th.

    New keys come by `add`. Up to WHOLE of them it is a plain dictionary and as fast as one, with its order. More have no
    order: that of a hash differs from process to process.
    """

    __slots__ = ("_shards",)

    _shards: tuple[dict[str, V], ...]

    def add(self, key: str, value: V) -> None:
        """Sets the value of a key that may be new."""
        self[key] = value
        if len(self) > WHOLE:
            self._deal_out()

    def add_all(self, values: Mapping[str, V]) -> None:
        """Sets the values of keys that may be new; they are not as many as could be too many for one step."""
        self.update(values)
        if len(self) > WHOLE:
            self._deal_out()

    def opened(self, key: str, made: Callable[[], V]) -> V:
        """The value of a key, one that is made for it where there is none."""
        found = self.get(key)
        if found is None:
            found = made()
            self.add(key, found)
        return found

    def _deal_out(self) -> None:
        shards = _dealt_out(self)
        self.clear()
        self._become_dealt(shards)

    def _become_dealt(self, shards: tuple[dict[str, V], ...]) -> None:
        self._shards = shards
        self.__class__ = _Dealt


class _Dealt(Sharded[V]):
    """What a large one turns into, and stays. As a dictionary it is empty, so it has each method of one anew."""

    __slots__ = ()

    def add(self, key: str, value: V) -> None:
        self._shards[hash(key) % SHARDS][key] = value

    def add_all(self, values: Mapping[str, V]) -> None:
        _distribute(values, self._shards)

    __setitem__ = add

    def __getitem__(self, key: str) -> V:
        return self._shards[hash(key) % SHARDS][key]

    def __delitem__(self, key: str) -> None:
        del self._shards[hash(key) % SHARDS][key]

    def __contains__(self, key: object) -> bool:
        return key in self._shards[hash(key) % SHARDS]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._shards)

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def __bool__(self) -> bool:
        return any(self._shards)

    def get(self, key: str, default: Any = None) -> Any:
        return self._shards[hash(key) % SHARDS].get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        return self._shards[hash(key) % SHARDS].pop(key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        return self._shards[hash(key) % SHARDS].setdefault(key, default)

    def update(self, *others: Any, **named: Any) -> None:
        self.add_all(dict(*others, **named))

    def popitem(self) -> tuple[str, V]:
        return next((shard for shard in self._shards if shard), self._shards[0]).popitem()

    def clear(self) -> None:
        for shard in self._shards:
            shard.clear()

    def copy(self) -> dict[str, V]:
        return dict(self.items())

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return _Values(self)

    def items(self) -> Any:
        return _Items(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment] # as of a dictionary

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    __or__ = __ror__ = __ior__ = __reversed__ = None  # type: ignore[assignment]


def pieces(table: Mapping[str, V]) -> Iterator[tuple[str, ...]]:
    """The keys in pieces, each as it is when its turn comes: who goes through them may be paused between two.

    A key that is there all the time is in just one of them; one that comes or goes meanwhile may be in one.
    """
    if isinstance(table, _Dealt):
        for shard in table._shards:  # noqa: SLF001 - a part of it
            yield tuple(shard)
    else:
        yield tuple(table)


def each_key(table: Mapping[str, V], do: Callable[[str], object], at_once: int) -> Steps[None]:
    """Does something with each of these keys, so many of them in a step; one may have gone when its turn comes."""
    for keys in pieces(table):
        yield from each(keys, do, at_once)


def in_parts(table: dict[str, V]) -> dict[str, V]:
    """The dictionary itself, or one in parts in its place where it is too large by now.

    For what there may be 100,000 of, and only one object has: a garbage collection goes through a small dictionary faster than
    through a Sharded one, and through one without objects in it not at all.
    """
    if len(table) <= WHOLE or isinstance(table, Sharded):
        return table
    return _of_shards(_dealt_out(table))


def without_values(table: dict[str, V]) -> dict[str, None]:
    """A dictionary of the same keys, in parts where that one is."""
    if not isinstance(table, _Dealt):
        return dict.fromkeys(table)
    return _of_shards(tuple(map(dict.fromkeys, table._shards)))  # noqa: SLF001 - a part of it


def _of_shards(shards: tuple[dict[str, V], ...]) -> Sharded[V]:
    found = Sharded[V]()
    found._become_dealt(shards)  # noqa: SLF001 - made here
    return found


def _dealt_out(values: Mapping[str, V]) -> tuple[dict[str, V], ...]:
    shards: tuple[dict[str, V], ...] = tuple({} for _ in range(SHARDS))
    _distribute(values, shards)
    return shards


def _distribute(values: Mapping[str, V], shards: Sequence[dict[str, V]]) -> None:
    # Faster than to hash each in turn, and they may be as many as fill a dictionary.
    for (key, value), hashed in zip(values.items(), map(hash, values), strict=True):
        shards[hashed % SHARDS][key] = value


class _Values(ValuesView[V]):
    """Goes through the dictionaries themselves: to look up each key takes several times as long."""

    _mapping: _Dealt[V]

    def __iter__(self) -> Iterator[V]:
        return chain.from_iterable(shard.values() for shard in self._mapping._shards)  # noqa: SLF001 - a part of it


class _Items(ItemsView[str, V]):
    """The same."""

    _mapping: _Dealt[V]

    def __iter__(self) -> Iterator[tuple[str, V]]:
        return chain.from_iterable(shard.items() for shard in self._mapping._shards)  # noqa: SLF001
