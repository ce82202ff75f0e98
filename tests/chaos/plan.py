"""What will be done to the cluster and when: drawn from a seed, and from nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from random import Random
from typing import Any, Final

from tests.chaos import beside
from tests.chaos.beside import Step

CARDS: Final = {"A": 16, "B": 6}
"""What the nodes have that stay for the whole run."""
QUEUES: Final = {
    "above": {"A": 12, "B": 5},
    "left": {"A": 7, "B": 4},
    "right": {"A": 8, "B": 3},
    "flat": {"A": 4, "B": 2},
}
PARENTS: Final = {"left": "above", "right": "above"}
SHARES: Final = "shares"
USED: Final = ("left", "right", "flat")
EXPRESSIONS: Final = ("A", "A", "A", "B", "A|B", "B|A")
DEPLOYMENTS: Final = ("d0", "d1", "d2")

_MOST_PODS: Final = 45
_FIRST_FAULT_S: Final = 4.0

LOAD: Final = {
    "pod": 10,
    "crowd": 3,
    "gang": 4,
    "share": 7,
    "deploy": 3,
    "finish": 9,
    "delete": 4,
    "delete_gang": 1,
    "quota": 3,
    "node_comes": 1,
    "node_goes": 1,
    "cordon": 1,
    "uncordon": 1,
    "tamper": 1,
}
"""How often each is drawn, in proportion."""

FAULTS: Final = {
    "kill_leader": 3,
    "kill_standby": 1,
    "kill_controllers": 2,
    "stop_leader": 2,
    "freeze_leader": 2,
    "free_lease": 2,
    "stop_standby": 1,
    "kill_webhook": 2,
    "kill_webhooks": 1,
    "stop_webhook": 1,
    "kill_api": 2,
    "stop_api": 1,
    "kill_etcd": 1,
    "stop_etcd": 1,
    "kill_scheduler": 1,
    "stop_scheduler": 1,
    "blackhole": 2,
    "lose_answers": 3,
    "stale_reads": 3,
    "slow": 2,
    "throttle": 2,
    "refuse": 2,
}
"""The same of faults."""

LEADER, STANDBY, WEBHOOK = "leader", "standby", "webhook"
CLOCKS: Final = {LEADER: 2, STANDBY: 1, WEBHOOK: 1}
"""The same of whose clock is set wrong."""
_WRONG_BY_S: Final = (20.0, 90.0, 600.0, 3600.0, 86_400.0)
_WRONG_FOR_S: Final = (2.0, 12.0)

_LENGTHS: Final = {
    "freeze_leader": (20.0, 24.0),
    "kill_controllers": (2.0, 10.0),
    "blackhole": (4.0, 12.0),
    "free_lease": (4.0, 14.0),
}
_LENGTH: Final = (1.0, 7.0)
_AT_ONCE: Final = frozenset({"slow", "stale_reads", "lose_answers", "stop_webhook", "stop_scheduler"})
"""What may come while something else is going on: none of them needs an API server that answers."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong from one second on to another; `choice` (0..1) says to whom, where there is a choice."""

    at: float
    kind: str
    length: float
    choice: float


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A wall clock that is so many seconds ahead, or behind for less than 0, from one second on and for so long."""

    at: float
    who: str
    by_s: float
    length: float
    choice: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is done in one run."""

    seed: int
    seconds: float
    steps: tuple[Step, ...]
    faults: tuple[Fault, ...]
    clocks: tuple[ClockStep, ...]


def draw(seed: int, seconds: float, kinds: dict[str, int] | None = None) -> Plan:
    """The plan for a seed: always the same. `kinds` are the faults to draw from, by default all; without any, clocks are right too."""
    kinds = FAULTS if kinds is None else kinds
    return Plan(
        seed,
        seconds,
        tuple(
            merge(
                _Load(Random(f"load {seed}")).steps(seconds),
                beside.line(Random(f"line {seed}"), seconds),
                beside.claims(Random(f"claims {seed}"), seconds),
                key=lambda step: step.at,
            )
        ),
        tuple(_faults(Random(f"faults {seed}"), seconds, kinds)) if kinds else (),
        tuple(_clocks(Random(f"clocks {seed}"), seconds)) if kinds else (),
    )


def _clocks(random: Random, seconds: float) -> Iterator[ClockStep]:
    """One after the other, whatever else happens at the time."""
    at = random.uniform(0.0, _FIRST_FAULT_S)
    while at < seconds - _FIRST_FAULT_S:
        (who,) = random.choices(list(CLOCKS), list(CLOCKS.values()))
        by_s = random.choice(_WRONG_BY_S) * random.choice((1, -1))
        length = random.uniform(*_WRONG_FOR_S)
        yield ClockStep(at, who, by_s, length, random.random())
        at += length + random.uniform(1.0, 8.0)


def _faults(random: Random, seconds: float, kinds: dict[str, int]) -> Iterator[Fault]:
    """One after the other with pauses; some have another one within them. Each kind comes once before any comes twice."""
    at, fresh = _FIRST_FAULT_S, list(kinds)
    random.shuffle(fresh)
    while at < seconds - _FIRST_FAULT_S:
        kind = fresh.pop() if fresh else random.choices(list(kinds), list(kinds.values()))[0]
        length = random.uniform(*_LENGTHS.get(kind, _LENGTH))
        yield Fault(at, kind, length, random.random())
        inner = [each for each in sorted(_AT_ONCE & set(kinds)) if _target(each) != _target(kind)]
        if inner and length > 2 and random.random() < 0.4:
            yield Fault(at + length / 4, random.choice(inner), length / 2, random.random())
        at += length + random.uniform(1.0, 7.0)


def _target(kind: str) -> str:
    """What a fault is about: nothing can be killed and stopped at once."""
    return kind.rpartition("_")[2].rstrip("s")


class _Load:
    """Draws steps, and keeps in mind whom it has made."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pods: list[str] = []
        self._gangs: dict[str, list[str]] = {}
        self._nodes: list[str] = []
        self._count = 0

    def steps(self, seconds: float) -> Iterator[Step]:
        """Yields deeds until the time is over."""
        at = 0.0
        while at < seconds:
            weights = dict(LOAD)
            if len(self._pods) > _MOST_PODS:
                weights |= {"pod": 0, "crowd": 0, "gang": 0, "share": 0}
            deed = self._random.choices(list(weights), list(weights.values()))[0]
            how = getattr(self, f"_{deed}")()
            if how is not None:
                yield Step(at, deed, how)
            at += self._random.expovariate(2.5)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count:04}"

    def _pod(self) -> dict[str, Any]:
        name = self._name("p")
        self._pods.append(name)
        return {"name": name, **self._ask(), "count": self._random.choice((1, 1, 1, 2, 3))}

    def _ask(self) -> dict[str, Any]:
        return {"queue": self._random.choice(USED), "card": self._random.choice(EXPRESSIONS)}

    def _crowd(self) -> dict[str, Any]:
        names = [self._name("p") for _ in range(self._random.randint(3, 7))]
        self._pods += names
        return {"names": names, **self._ask()}

    def _gang(self) -> dict[str, Any]:
        name, minimum = self._name("g"), self._random.randint(2, 4)
        members = [f"{name}-{index}" for index in range(minimum + self._random.choice((0, 0, 1)))]
        self._pods += members
        self._gangs[name] = members
        return {"name": name, "members": members, "minimum": minimum, **self._ask()}

    def _share(self) -> dict[str, Any]:
        name = self._name("s")
        self._pods.append(name)
        core = self._random.choice((10, 20, 30, 50, 60, 80, 100))
        memory = None if core == 100 else self._random.choice((500, 2000, 4000, 6000))
        return {"name": name, "core": core, "memory": memory}

    def _deploy(self) -> dict[str, Any]:
        number = self._random.randrange(len(DEPLOYMENTS))
        queue, card = USED[number % len(USED)], EXPRESSIONS[number]
        return {
            "name": DEPLOYMENTS[number],
            "replicas": self._random.randint(0, 4),
            "queue": queue,
            "card": card,
        }

    def _oldest(self) -> str | None:
        """One of those that were made first and are in no gang."""
        members = {member for gang in self._gangs.values() for member in gang}
        known = [pod for pod in self._pods if pod not in members][:6]
        return self._random.choice(known) if known else None

    def _finish(self) -> dict[str, Any] | None:
        if self._gangs and self._random.random() < 0.3:
            gang = next(iter(self._gangs))
            return {"names": self._forget_gang(gang)}
        return self._one()

    def _delete(self) -> dict[str, Any] | None:
        return self._one()

    def _one(self) -> dict[str, Any] | None:
        pod = self._oldest()
        if pod is None:
            return None
        self._pods.remove(pod)
        return {"names": [pod]}

    def _delete_gang(self) -> dict[str, Any] | None:
        if not self._gangs:
            return None
        gang = self._random.choice(list(self._gangs))
        return {"name": gang, "names": self._forget_gang(gang)}

    def _forget_gang(self, gang: str) -> list[str]:
        members = self._gangs.pop(gang)
        self._pods = [pod for pod in self._pods if pod not in members]
        return members

    def _quota(self) -> dict[str, Any]:
        queue = self._random.choice(list(QUEUES))
        return {
            "queue": queue,
            "quota": {card: self._random.randint(1, most + 1) for card, most in QUEUES[queue].items()},
        }

    def _node_comes(self) -> dict[str, Any]:
        name = self._name("extra-")
        self._nodes.append(name)
        return {"name": name, "card": self._random.choice(("A", "B", "mgpu"))}

    def _node_goes(self) -> dict[str, Any] | None:
        if not self._nodes:
            return None
        return {"name": self._nodes.pop(self._random.randrange(len(self._nodes)))}

    def _cordon(self) -> dict[str, Any]:
        return {"name": self._random.choice(("a0", "b0", "m0"))}

    def _uncordon(self) -> dict[str, Any]:
        return {"name": self._random.choice(("a0", "b0", "m0"))}

    def _tamper(self) -> dict[str, Any] | None:
        pod = self._oldest()
        return (
            None if pod is None else {"name": pod, "what": self._random.choice(("gate", "record", "index"))}
        )
