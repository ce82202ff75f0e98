"""Which lifts wait for others of their group to be stored."""

from collections.abc import Mapping

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
            (self._behind if lift.beyond else self._ahead).setdefault(group, {})[key] = lift

    def any_under_way(self, group: str) -> bool:
        """Whether lifts of a group are to be written, or being written."""
        return group in self._ahead or group in self._behind

    def waits(self, lift: Lift) -> bool:
        """Whether the lift may not be written yet."""
        return lift.beyond and lift.pod.group_key in self._ahead

    def stored(self, lift: Lift) -> list[Key]:
        """A lift has been stored. Returns those that need not wait any longer."""
        group = lift.pod.group_key
        self.end(lift)
        return [] if lift.beyond or group in self._ahead else [*self._behind.get(group, ())]

    def lost(self, lift: Lift) -> list[Lift]:
        """A lift is not stored and never will be. Returns those that were decided for it, and are to be decided on again."""
        group = lift.pod.group_key
        self.end(lift)
        return [] if lift.beyond else [*self._behind.pop(group, {}).values()]

    def under_way(self, group: str) -> dict[Key, Lift]:
        """The lifts of a group that are to be written, or being written."""
        return {**self._ahead.get(group, {}), **self._behind.get(group, {})}

    def lost_together(self, group: str, lost: Mapping[Key, Lift]) -> list[Lift]:
        """The same as `lost` for several of those under way of a group at once."""
        ahead, behind = self._ahead.pop(group, {}), self._behind.pop(group, {})
        left = {key: lift for key, lift in ahead.items() if key not in lost}
        if left:
            self._ahead[group] = left
        waiting = {key: lift for key, lift in behind.items() if key not in lost}
        if len(left) < len(ahead):
            return [*waiting.values()]
        if waiting:
            self._behind[group] = waiting
        return []

    def clear(self) -> None:
        """Nothing is under way."""
        self._ahead.clear()
        self._behind.clear()

    def end(self, lift: Lift) -> None:
        """A lift is not written any more, for whatever reason, or another one of its pod takes its place."""
        group, key = lift.pod.group_key, key_of(lift.pod)
        side = self._behind if lift.beyond else self._ahead
        those = side.get(group, {})
        if those.get(key) is lift:
            del those[key]
            if not those:
                del side[group]
