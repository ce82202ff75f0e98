"""Who follows the lists of queues is told when there is something on them that he does not know of."""

from core.dra.booking import Effect
from core.queues.wakeups import Wakeups


class Told:
    """The lists of queues, and how often their followers were told."""

    def __init__(self) -> None:
        self.wakeups = Wakeups()
        self.deciding = self.publishing = 0
        self.wakeups.follow_queues(self._decide)
        self.wakeups.follow_figures(self._publish)

    def _decide(self) -> None:
        self.deciding += 1

    def _publish(self) -> None:
        self.publishing += 1


def test_who_publishes_is_told_once_until_he_has_taken_what_there_is() -> None:
    told = Told()
    told.wakeups.publish("a")
    told.wakeups.publish("a", "b")
    assert (told.publishing, told.wakeups.take_figures()) == (1, {"a", "b"})
    told.wakeups.publish("a")
    assert (told.publishing, told.wakeups.take_figures()) == (2, {"a"})
    assert told.deciding == 0


def test_who_publishes_is_not_told_of_nothing_nor_of_what_is_muted() -> None:
    told = Told()
    told.wakeups.publish()
    with told.wakeups.muted():
        told.wakeups.publish("a")
    told.wakeups.changed(Effect(frozenset(), frozenset(("a",))))
    assert (told.publishing, told.wakeups.take_figures()) == (0, set())


def test_a_queue_that_is_forgotten_is_told_of_when_it_has_figures_again() -> None:
    told = Told()
    told.wakeups.publish("a")
    told.wakeups.forget("a")
    told.wakeups.publish("a")
    assert (told.publishing, told.wakeups.take_figures()) == (2, {"a"})


def test_who_decides_is_told_of_each_queue_that_was_not_on_the_list() -> None:
    told = Told()
    told.wakeups.look_at("a")
    told.wakeups.help("a")
    assert told.deciding == 1
    told.wakeups.help("b")
    assert told.deciding == 2
    told.wakeups.take("a")
    told.wakeups.help("a")
    assert (told.deciding, told.publishing) == (3, 0)
