"""A dictionary that never grows in one piece."""

from typing import Final, Generic, TypeVar

V = TypeVar("V")

SHARDS: Final = 64
WHOLE: Final = 2048
"""So many keys are in one piece; to be dealt out they take a fifth of a millisecond."""


class Sharded(Generic[V]):
    """Values by key, in many dictionaries where it is large: for what is kept of every pod, and asked for by its key alone.

    A dictionary moves whole when it grows: 5 ms at 87,382 keys, and all that have the same keys grow at the same pod. Each of
    these grows at a moment of its own, and moves a 64th. They have no order: that of a hash differs from process to process.
    """

    __slots__ = ("_mask", "_shards")

    def __init__(self) -> None:
        self._shards: tuple[dict[str, V], ...] = ({},)
        self._mask = 0

    def __getitem__(self, key: str) -> V:
        return self._shards[hash(key) & self._mask][key]

    def __setitem__(self, key: str, value: V) -> None:
        shard = self._shards[hash(key) & self._mask]
        shard[key] = value
        if not self._mask and len(shard) > WHOLE:
            self._deal_out(shard)

    def __contains__(self, key: str) -> bool:
        return key in self._shards[hash(key) & self._mask]

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def get(self, key: str) -> V | None:
        """The value of a key; None where there is none."""
        return self._shards[hash(key) & self._mask].get(key)

    def pop(self, key: str) -> V | None:
        """Takes a key out. Returns its value; None where there was none."""
        return self._shards[hash(key) & self._mask].pop(key, None)

    def _deal_out(self, whole: dict[str, V]) -> None:
        self._shards, self._mask = tuple({} for _ in range(SHARDS)), SHARDS - 1
        for key, value in whole.items():
            self._shards[hash(key) & self._mask][key] = value
