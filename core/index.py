"""A many-to-many index whose entries are replaced as a whole."""

from collections.abc import Collection


class Index:
    """Value -> the members that name it. Both directions are kept, so replacing costs what is replaced."""

    __slots__ = ("_members", "_values")

    def __init__(self) -> None:
        self._members: dict[str, dict[str, None]] = {}
        self._values: dict[str, tuple[str, ...]] = {}

    def get(self, value: str) -> Collection[str]:
        """The members under a value, in the order in which they came."""
        return self._members.get(value, {}).keys()

    def values(self, member: str) -> tuple[str, ...]:
        """The values that a member is listed under."""
        return self._values.get(member, ())

    def put(self, member: str, *values: str | None) -> bool:
        """Lists a member under exactly these values; None stands for no value, one that is repeated for itself.

        Returns whether the member left a value that it was listed under.
        """
        had = self._values.get(member, ())
        if values == had:
            # By far most calls, and what is listed holds no None.
            return False
        wanted = tuple(dict.fromkeys(value for value in values if value is not None))
        if wanted == had:
            return False
        for value in had:
            members = self._members[value]
            members.pop(member, None)
            if not members:
                del self._members[value]
        for value in wanted:
            self._members.setdefault(value, {})[member] = None
        if wanted:
            self._values[member] = wanted
        else:
            self._values.pop(member, None)
        return any(value not in wanted for value in had)
