"""Why a job is not let in, said on its PodGroup: the scheduler that asked shows no reason."""

from controller.announcements import Recorder
from core.extender.enqueue import Vote
from core.objects import Group
from kube.events import Reference
from kube.resources import PODGROUPS

_ACTION = "Enqueue"


class VoteNotes:
    """Remembers what was said about each PodGroup; the scheduler asks every second, and only what is new is said."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._said: dict[str, tuple[str, str]] = {}

    def told(self, vote: Vote) -> None:
        """Takes in a vote."""
        group, short = vote.group, vote.shortfall
        if short is None:
            self._said.pop(group.uid, None)
            return
        said = (short.reason, short.message)
        if self._said.get(group.uid) != said:
            self._said[group.uid] = said
            regarding = Reference.of(PODGROUPS, group.name, group.namespace, group.uid)
            self._recorder.emit(regarding, "Warning", short.reason, short.message, _ACTION)

    def group_changed(self, old: Group | None, new: Group | None) -> None:
        """Forgets a PodGroup that does not exist any more."""
        if old is not None and new is None:
            self._said.pop(old.uid, None)
