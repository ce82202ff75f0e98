"""Questions under way on which lifts depend, and which lifts wait for the answers."""

from controller.flight import Key


class OpenQuestions:
    """Each question is asked once at a time, by the first lift that depends on it; others wait with that one."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Key]] = {}
        """Of each question who asks it, and then who waits as well."""
        self._keys: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        """Whether a lift waits for an answer."""
        return key in self._keys

    def join(self, question: str, key: Key) -> bool:
        """A lift depends on this. Returns whether it is being asked already; if not, `key` asks it from now on, and ends it."""
        asked = question in self._waiting
        self._waiting.setdefault(question, []).append(key)
        self._keys.add(key)
        return asked

    def end(self, question: str) -> list[Key]:
        """Nobody asks this any more. Returns who waited for it beside the one who did."""
        keys = self._waiting.pop(question)
        self._keys.difference_update(keys)
        return keys[1:]
