"""Gangs that were cut short, in a queue of six cards: who is told of, and who is given back, at any second."""

from core.plan.unfinished import Unfinished, UnfinishedGangs, unfinished_gangs
from core.queues.ledger import Ledger
from core.settings import ReservationSettings, Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

SECOND = 10**6
GIVES_BACK = ReservationSettings(warn_after_s=600, unfinished_after_s=60)
TOLD = ReservationSettings(warn_after_s=600)


class World:
    """A queue with six cards, and gangs of four of which three members are lifted and one waits."""

    def __init__(self, settings: ReservationSettings = GIVES_BACK) -> None:
        self.ledger = Ledger(Settings())
        self.since: dict[str, int] = {}
        self.gangs = UnfinishedGangs(self.ledger, settings, self.since.get)
        self.ledger.put_node(a_node("n").card("A", 16).view())
        self.ledger.put_queue(a_queue("q").cards({"A": 6}).view())

    def group(self, name: str, created: str = "2024-01-01T00:00:00Z", minimum: int = 4) -> None:
        self.ledger.put_group(
            a_group(name).in_queue("q").min_member(minimum).created(created).uid(name).view()
        )

    def half(self, name: str, created: str = "2024-01-01T00:00:00Z", *, second: int = 0) -> None:
        self.group(name, created)
        for number in range(3):
            self.put(lifted(name, number), second)
        self.put(member(name, 3), second)

    def put(self, pod: PodBuilder, second: int = 0) -> None:
        view = pod.view()
        self.since.setdefault(view.uid, second * SECOND)
        self.ledger.put_pod(view)

    def drop(self, *names: str) -> None:
        for name in names:
            self.ledger.drop_pod(f"uid-ml-{name}")

    def unfinished(self) -> list[Unfinished]:
        return [gang for gang in unfinished_gangs(self.ledger) if gang is not None]

    def told(self, second: int) -> list[str]:
        finish(self.gangs.look(second * SECOND))
        return [gang.group.name for gang in self.gangs.take_late(second * SECOND)]

    def given_back(self, second: int) -> list[str]:
        finish(self.gangs.look(second * SECOND))
        return [pod.name for pod in finish(self.gangs.take_condemned(second * SECOND))]


def member(gang: str, number: int) -> PodBuilder:
    pod = a_pod(f"{gang}-{number}").gpu(1).card("A").in_group(gang).owned_by("Job", gang)
    return pod.gated().created(f"2024-01-01T00:01:{number:02}Z")


def lifted(gang: str, number: int) -> PodBuilder:
    return lifted_alone(gang, number).together(4)


def lifted_alone(gang: str, number: int) -> PodBuilder:
    pod = member(gang, number).put("spec", "schedulingGates", value=[])
    return pod.assigned({"A": 1}).charged("q")


OLD, YOUNG = "2024-01-01T00:00:00Z", "2024-01-01T00:00:10Z"
