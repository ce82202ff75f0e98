"""What was taken in by a read and never by the watch: of those that go away before it shows them it tells nobody."""

from collections.abc import Callable


class Unseen:
    """Names of objects that are known by a read alone, as many as that, until it is certain what became of them.

    One is gone when the watch has come past the read without it: when a list that began after the read does not hold it, or
    list or watch have reached the version that was read. A list that began before says nothing of an object of a later
    version. `lost` is called with the name of each that is gone.
    """

    def __init__(self, lost: Callable[[str], None]) -> None:
        self._lost = lost
        self._read: dict[str, int | None] = {}
        """The version in which each was read; None where that is no number, and so says nothing about the order."""
        self._before_list: set[str] = set()
        """Those of them that were read before the list that is under way."""

    def put(self, name: str, version: str) -> None:
        """Takes note of an object that was read just now in this version, and that the watch does not show."""
        self._read[name] = _number(version)
        self._before_list.discard(name)

    def drop(self, name: str) -> None:
        """The watch has shown it and will tell when it goes, or it is known to be gone."""
        if name in self._read:
            del self._read[name]
            self._before_list.discard(name)

    def lose_all(self) -> None:
        """Nothing is to be known by a read alone any more."""
        self._lose(tuple(self._read))

    def list_begins(self) -> None:
        """Everything that was read before will be in the list, unless it is gone by then."""
        self._before_list = set(self._read)

    def listed(self, version: str) -> None:
        """The list that began last has been taken in completely; it shows the state at this version."""
        self._lose(tuple(self._before_list))
        self.come_to(version)

    def come_to(self, version: str) -> None:
        """Every change up to this version has been taken in."""
        reached = _number(version) if self._read else None
        if reached is not None:
            self._lose([name for name, read in self._read.items() if read is not None and read <= reached])

    def _lose(self, names: list[str] | tuple[str, ...]) -> None:
        for name in names:
            self.drop(name)
            self._lost(name)


def _number(version: str) -> int | None:
    """Versions of objects of one kind are numbers that grow, see controller.readings."""
    return int(version) if version.isdecimal() else None
