"""Which lifts wait for others of their group to be stored."""

from controller.flight import Key, key_of
from core.plan.decision import Lift


class WriteOrder:
    """Members beyond those that the tasks of a group must have come last, see `Lift.beyond`."""

    def __init__(self) -> None:
        self._ahead: dict[str, dict[Key, Lift]] = {}
        """By group, the lifts under way that others wait for."""
        self._behind: dict[str, dict[Key, Lift]] = {}
        """Those that wait for them, or have not been tried yet."""

    def begun(self, lift: Lift) -> None:
        """A lift is to be written."""
        group, key = lift.pod.group_key, key_of(lift.pod)
        if group:
            side, other = (self._behind, self._ahead) if lift.beyond else (self._ahead, self._behind)
            side.setdefault(group, {})[key] = lift
            # Of one pod the last lift that was decided counts.
            if key in other.get(group, {}):
                self._end(other[group][key])

    def waits(self, lift: Lift) -> bool:
        """Whether the lift may not be written yet."""
        return lift.beyond and lift.pod.group_key in self._ahead

    def stored(self, lift: Lift) -> list[Key]:
        """A lift has been stored. Returns those that need not wait any longer."""
        self._end(lift)
        group = lift.pod.group_key
        return [] if lift.beyond or group in self._ahead else [*self._behind.get(group, ())]

    def lost(self, lift: Lift) -> list[Lift]:
        """A lift is not stored and never will be. Returns those that were decided for it, and are to be decided on again."""
        self._end(lift)
        return [] if lift.beyond else [*self._behind.pop(lift.pod.group_key, {}).values()]

    def clear(self) -> None:
        """Nothing is under way."""
        self._ahead.clear()
        self._behind.clear()

    def _end(self, lift: Lift) -> None:
        group, key = lift.pod.group_key, key_of(lift.pod)
        side = self._behind if lift.beyond else self._ahead
        those = side.get(group, {})
        if those.get(key) is lift:
            del those[key]
            if not those:
                del side[group]
