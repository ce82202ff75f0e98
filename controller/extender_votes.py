"""Why a job is not let in, said on its PodGroup: the scheduler that asked shows no reason."""

from collections.abc import Callable

from controller.announcements import MOMENT_S
from controller.sayings import History, Recorder, Saying, Sayings
from core.extender.enqueue import Vote
from core.objects import Group
from kube.events import Past, Reference
from kube.resources import PODGROUPS

_ACTION = "Enqueue"


class VoteNotes:
    """Says what is new about each PodGroup that waits, two events within an hour at most; the scheduler asks each second.

    Says it while `run` runs, and knows from `history` what was said before about the PodGroups that `exists` knows.
    """

    def __init__(
        self,
        recorder: Recorder,
        history: History | None = None,
        exists: Callable[[Reference], bool] = lambda _: True,
    ) -> None:
        def topic_of(past: Past) -> str:
            return _ACTION if past.words.action == _ACTION and exists(past.regarding) else ""

        self._exists = exists
        self._sayings = Sayings(recorder, limited=frozenset({_ACTION}), history=history, topic_of=topic_of)

    async def run(self) -> None:
        """Announces until cancelled."""
        await self._sayings.run()

    def told(self, vote: Vote) -> None:
        """Takes in a vote."""
        group, why = vote.group, vote.why
        if why is None:
            self._sayings.again(group.uid, _ACTION)
            return
        regarding = Reference.of(PODGROUPS, group.name, group.namespace, group.uid)
        if self._exists(regarding):
            saying = Saying(regarding, why.code, why.message, _ACTION)
            self._sayings.say(_ACTION, saying, moment_s=MOMENT_S)

    def group_changed(self, old: Group | None, new: Group | None) -> None:
        """Forgets a PodGroup that does not exist any more."""
        if old is not None and (new is None or new.uid != old.uid):
            self._sayings.gone(old.uid)
