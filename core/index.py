"""A many-to-many index whose entries are replaced as a whole."""

from collections.abc import Collection

from core.roll import Roll
from core.sharded import Sharded


class Index:
    """Value -> the members that name it. Both directions are kept, so replacing costs what is replaced."""

    __slots__ = ("_members", "_values")

    def __init__(self) -> None:
        self._members: dict[str, Roll] = {}
        self._values = Sharded[tuple[str, ...]]()

    def get(self, value: str) -> Collection[str]:
        """The members under a value, in the order in which they came."""
        return self._members.get(value, ())

    def values(self, member: str) -> tuple[str, ...]:
        """The values that a member is listed under."""
        return self._values.get(member) or ()

    def put(self, member: str, *values: str | None) -> bool:
        """Lists a member under exactly these values; None stands for no value, one that is repeated for itself.

        Returns whether the member left a value that it was listed under.
        """
        had = self._values.get(member) or ()
        if values == had:
            # By far most calls, and what is listed holds no None.
            return False
        wanted = tuple(dict.fromkeys([value for value in values if value is not None]))
        if wanted == had:
            return False
        for value in had:
            self._leave(member, value)
        for value in wanted:
            roll = self._members.get(value)
            if roll is None:
                roll = self._members[value] = Roll()
            roll.add(member)
        if wanted:
            self._values.add(member, wanted)
        else:
            self._values.pop(member, None)
        return not set(had).issubset(wanted)

    def _leave(self, member: str, value: str) -> None:
        roll = self._members[value]
        roll.discard(member)
        if not roll:
            del self._members[value]
