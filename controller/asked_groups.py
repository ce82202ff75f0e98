"""Members of groups that are asked about: they are decided on together, when all answers are there."""

from controller.flight import Key


class AskedGroups:
    """Who is let in while others are asked about might hold quota for a gang that does not start."""

    def __init__(self) -> None:
        self._group: dict[Key, str] = {}
        """Of those in here; a pod may come to be in another one meanwhile."""
        self._asked: dict[str, set[Key]] = {}
        """By group, about whom an answer is waited for; no group without such."""
        self._waiting: dict[str, dict[Key, None]] = {}
        """Those that would be taken in and wait for the answers about these."""

    def __len__(self) -> int:
        return len(self._group)

    def clear(self) -> None:
        """Nobody is asked about."""
        for kept in (self._group, self._asked, self._waiting):
            kept.clear()

    def is_asked_about(self, group: str) -> bool:
        """Whether an answer about a member is waited for; "" is no group."""
        return group in self._asked

    def ask(self, group: str, key: Key) -> None:
        """A member is asked about."""
        if group:
            self._group[key] = group
            self._asked.setdefault(group, set()).add(key)

    def wait(self, group: str, key: Key) -> None:
        """A member would be taken in, and waits for the answers about others."""
        self._group[key] = group
        self._waiting.setdefault(group, {})[key] = None

    def answered(self, key: Key, group: str, *, taken_in: bool) -> list[Key]:
        """It is known about a pod of this group, or it is gone. Returns who is to be decided on now."""
        group = self._group.pop(key, group)
        asked, waiting = self._asked.get(group, set()), self._waiting.get(group, {})
        asked.discard(key)
        waiting.pop(key, None)
        if asked:
            if taken_in:
                self.wait(group, key)
            return []
        self._asked.pop(group, None)
        released = [*self._waiting.pop(group, ())]
        for each in released:
            del self._group[each]
        return [*released, key] if taken_in else released
