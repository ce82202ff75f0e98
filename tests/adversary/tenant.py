"""A tenant who does anything that `edit` allows, at random: nothing of it is meant to make sense."""

import random
from collections import Counter
from typing import Any, Final

from core import names
from core.settings import Settings
from tests.adversary import ways
from tests.adversary.apiserver import ADMIN, HOME, KUBERNETES_GROUP, TENANT, RefusedError
from tests.adversary.ways import CLASS, CLOSED, OTHER, OWN, SERVED, WAYS
from tests.adversary.world import World
from tests.builders import a_group, a_job, a_scheduling_group
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import PodBuilder

DEFAULT: Final = "default"
QUOTAS: Final = {OWN: 2, OTHER: 3, CLOSED: 4, DEFAULT: 1}
"""Queue -> for how many pods of each way it has quota."""
YEAR_S: Final = 31_536_000
MOST_PODS: Final = 24

_QUEUES: Final = (OWN, OWN, OWN, OTHER, CLOSED, "nowhere", "")
_SCHEDULERS: Final = ("default-scheduler",) * 5 + ("volcano", "volcano", "nobody", "nobody")
_GROUPS, _JOBS, _CLAIMS, _TEMPLATES = ("g0", "g1", "g2"), ("j0", "j1"), ("c0", "c1", "c2"), ("each", "t1")
_GANGS, _SIZES, _REPLICAS = ("x", "y", "g0"), ("1", "2", "2", "2", "3", "4", "0", "100000"), ("r0", "r1")
_CLAIM_OF_ENTRY: Final = "resource.kubernetes.io/pod-claim-name"
_GATES: Final = ("example.com/licence", names.VOLCANO_GATE)
_TASKS: Final = ("v", "w")
_FOREIGN_GATE: Final = 0.1
_PLAIN: Final = 0.4
"""How many pods ask properly: a tenant that gets nothing to run shows nothing."""
_VALUES: Final[dict[str, tuple[str | None, ...]]] = {
    names.CARD_NAME_ANNOTATION: ("A", "B", "A|B", ways.MPS, ways.MIG, "", "no card", None),
    names.QUEUE_NAME_ANNOTATION: (*_QUEUES, None),
    names.JOB_QUEUE_ANNOTATION: (*_QUEUES, None),
    names.GROUP_NAME_ANNOTATION: (*_GROUPS, "missing", None),
    names.ASSIGNED_ANNOTATION: ('{"A":0}', '{"B":1}', "x", None),
    names.CHARGED_QUEUE_ANNOTATION: (*_QUEUES, None),
    names.CLAIMS_ANNOTATION: ("", "x", None),
    names.GANG_ANNOTATION: ("1", "9", None),
    names.GANG_OF_ANNOTATION: (
        "ml/other|",
        "ml/x|",
        "ml/x|r0",
        "ml/y|r0",
        "ml/g0",
        "ml/g0@scheduling.k8s.io",
        "",
        None,
    ),
    names.GANG_NAME_ANNOTATION: (*_GANGS, "no gang", None),
    names.GANG_SIZE_ANNOTATION: (*_SIZES, None),
    names.LIFTED_ANNOTATION: ("true", None),
    names.TASK_SPEC_ANNOTATION: (*_TASKS, None),
    names.MGPU_MULTIPLE_ANNOTATION: ("1", "2", None),
    names.MGPU_POLICY_KEY: ("native-burst-share", None),
    names.GPU_INDEX_PREFIX + "main": ("0", None),
    names.MIRROR_POD_ANNOTATION: ("x", None),
}
ACTIONS: Final = (
    *["create"] * 6,
    *["gang"] * 2,
    *["annotate"] * 5,
    "ungate",
    "unlabel",
    *["own"] * 2,
    "regroup",
    *["group"] * 3,
    *["kubernetes_group"] * 2,
    *["job"] * 2,
    *["claim"] * 3,
    "edit_claim",
    "take_claim_away",
    "template",
    *["delete"] * 2,
    *["cluster"] * 6,
)
"""What is done at random, each as often as it stands here."""
_RECORDS: Final = tuple(filter(names.is_record, _VALUES))


class Tenant:
    """Acts on a world of its own. `done` and `refused` count what was tried and what came of it."""

    def __init__(self, seed: int, settings: Settings = ways.DENYING) -> None:
        self.dice = random.Random(seed)
        self.world: World = ways.world(settings)
        for name, pods in QUOTAS.items():
            built = ways.limited(name, pods)
            built = built.used_by("theirs") if name == CLOSED else built
            if name == DEFAULT:
                self.world.create(built.build(), ADMIN)
            else:
                self.world.update(built.build(), ADMIN)
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._serial = 0

    def act(self) -> str:
        """Does one thing, whatever comes of it, and returns what it was."""
        return self.do(self.dice.choice(ACTIONS))

    def do(self, name: str, seed: int | None = None) -> str:
        """The same with a certain thing; what it does exactly is told by the seed, if there is one."""
        if seed is not None:
            self.dice.seed(seed)
        if len(self.world.all("Pod")) >= MOST_PODS and name in {"create", "gang"}:
            name = "make_room"
        self.done[name] += 1
        try:
            getattr(self, name)()
        except RefusedError as error:
            self.refused.update(error.codes)
            return f"{name}: {' '.join(error.codes)}"
        return name

    def _pod(self) -> str:
        return self._any("Pod")

    def _any(self, kind: str) -> str:
        found: list[str] = [raw["metadata"]["name"] for raw in self.world.all(kind)]
        if not found:
            raise RefusedError("NotFound")
        return self.dice.choice(found)

    def _chance(self, of: float) -> bool:
        return self.dice.random() < of

    # -- what `edit` allows --------------------------------------------------------------------------------------

    def create(self) -> None:
        self._serial += 1
        dice, way = self.dice, self.dice.choice(sorted(WAYS))
        if self._chance(_PLAIN):
            self.world.create(
                ways.make(self.world, way, f"p{self._serial}", dice.choice((OWN, OTHER))).build()
            )
            return
        built = WAYS[way].named(f"p{self._serial}", dice.choice(_QUEUES)).scheduler(dice.choice(_SCHEDULERS))
        if way == "claim":
            # Those of others too, and such as were made for one pod.
            built = built.claim(
                "dev", name=self._any("ResourceClaim") if self._chance(0.3) else dice.choice(_CLAIMS)
            )
        elif way == "template" and self._chance(0.5):
            built = built.put("spec", "resourceClaims", value=[]).claim(
                "dev", template=dice.choice(_TEMPLATES)
            )
        if self._chance(_FOREIGN_GATE):
            built = built.put("spec", "schedulingGates", value=[{"name": dice.choice(_GATES)}])
        if self._chance(0.25):
            built = built.in_group(dice.choice((*_GROUPS, "missing")))
        if self._chance(0.2):
            built = built.in_scheduling_group(dice.choice((*_GROUPS, "missing")))
        if self._chance(0.3):
            built = built.task(dice.choice(_TASKS))
        if self._chance(0.3):
            built = self._in_gang(built)
        if self._chance(0.15):
            built = built.put("metadata", "ownerReferences", value=[self._owner()])
        if self._chance(0.05):
            key = dice.choice(_RECORDS)
            built = built.annotation(key, dice.choice([each for each in _VALUES[key] if each is not None]))
        if self._chance(0.1) and way not in {"claim", "template"}:
            # With claims that is let in, see docs/security.md.
            built = built.put("spec", "nodeName", value=dice.choice("abmgsd"))
            built = built.mirror() if self._chance(0.5) else built
        if self._chance(0.2):
            built = built.put("spec", "terminationGracePeriodSeconds", value=YEAR_S)
        self.world.create(built.priority(dice.randrange(3)).build())

    def _in_gang(self, built: PodBuilder) -> PodBuilder:
        """A member of a gang without PodGroup: of one owner, of one label, of nobody's, or by halves."""
        entries = {
            names.GANG_NAME_ANNOTATION: self.dice.choice(_GANGS),
            names.GANG_SIZE_ANNOTATION: self.dice.choice(_SIZES),
        }
        if self._chance(0.1):
            del entries[self.dice.choice(sorted(entries))]
        for key, value in entries.items():
            built = built.annotation(key, value)
        whose = self.dice.random()
        if whose < 0.3:
            return built.label(names.LEADER_WORKER_GROUP_LABEL, self.dice.choice(_REPLICAS))
        return built.put("metadata", "ownerReferences", value=[self._owner()]) if whose < 0.7 else built

    def gang(self) -> None:
        """Members of one gang, or one fewer or more than it says that it has, in one queue."""
        dice, size = self.dice, self.dice.randint(2, 3)
        name, queue, way = dice.choice(_GANGS), dice.choice((OWN, OTHER, OTHER)), dice.choice(sorted(WAYS))
        owners, replica = [self._owner()] if self._chance(0.5) else [], dice.choice((*_REPLICAS, ""))
        for _ in range(size + dice.choice((-1, 0, 0, 1))):
            self._serial += 1
            built = ways.make(self.world, way, f"p{self._serial}", queue)
            built = built.annotation(names.GANG_NAME_ANNOTATION, name)
            built = built.annotation(names.GANG_SIZE_ANNOTATION, str(size))
            built = built.label(names.LEADER_WORKER_GROUP_LABEL, replica) if replica else built
            self.world.create(built.put("metadata", "ownerReferences", value=owners).build())

    def annotate(self) -> None:
        key = self.dice.choice(sorted(_VALUES))
        entries = {key: self.dice.choice(_VALUES[key])}
        self.world.annotate(self._pod(), **entries)

    def ungate(self) -> None:
        """Any of the gates, or all."""
        name = self._pod()
        gates = self.world.get("Pod", name)["spec"].get("schedulingGates", [])
        left = [gate for gate in gates if self._chance(0.5)]
        self.world.change("Pod", name, "spec", "schedulingGates", value=left)

    def unlabel(self) -> None:
        entries = {names.MANAGED_LABEL: self.dice.choice((None, "false"))}
        self.world.label(self._pod(), **entries)

    def regroup(self) -> None:
        """Into another replica of its set, or out of it."""
        entries = {names.LEADER_WORKER_GROUP_LABEL: self.dice.choice((*_REPLICAS, None))}
        self.world.label(self._pod(), **entries)

    def own(self) -> None:
        """Given to a Job, or to nobody."""
        if self._chance(0.3):
            self.world.change("Pod", self._pod(), "metadata", "ownerReferences", value=[])
            return
        self.world.change("Pod", self._pod(), "metadata", "ownerReferences", value=[self._owner()])

    def _owner(self) -> dict[str, Any]:
        name = self.dice.choice((*_JOBS, "missing"))
        stored = self.world.find("Job", name)
        uid = stored["metadata"]["uid"] if stored is not None else "u"
        api = "batch.volcano.sh/v1alpha1"
        return {"apiVersion": api, "kind": "Job", "name": name, "uid": uid, "controller": True}

    def group(self) -> None:
        """Made, moved, made larger or smaller, or deleted."""
        name, queue = self.dice.choice(_GROUPS), self.dice.choice(_QUEUES)
        if self.world.find("PodGroup", name) is None:
            built = a_group(name).in_queue(queue).min_member(self.dice.randrange(4))
            self.world.create(built.build())
        elif self._chance(0.3):
            self.world.delete("PodGroup", name)
        elif self._chance(0.5):
            self.world.change("PodGroup", name, "spec", "queue", value=queue)
        elif self._chance(0.3):
            tasks = {task: self.dice.randrange(3) for task in _TASKS}
            self.world.change("PodGroup", name, "spec", "minTaskMember", value=tasks)
        else:
            self.world.change("PodGroup", name, "spec", "minMember", value=self.dice.randrange(5))

    def kubernetes_group(self) -> None:
        """The same of a PodGroup of Kubernetes, which names no queue; two of one name, of either kind, are nothing to each other."""
        name, policy = self.dice.choice(_GROUPS), {"gang": {"minCount": self.dice.randrange(1, 4)}}
        if self.world.find(KUBERNETES_GROUP, name) is None:
            self.world.create({**a_scheduling_group(name).build(), "kind": KUBERNETES_GROUP})
        elif self._chance(0.3):
            self.world.delete(KUBERNETES_GROUP, name)
        else:
            self.world.change(KUBERNETES_GROUP, name, "spec", "schedulingPolicy", value=policy)

    def job(self) -> None:
        name, queue = self.dice.choice(_JOBS), self.dice.choice(_QUEUES)
        if self.world.find("Job", name) is None:
            self.world.create(a_job(name).in_queue(queue).build())
        elif self._chance(0.3):
            self.world.delete("Job", name)
        else:
            self.world.change("Job", name, "spec", "queue", value=queue)

    def claim(self) -> None:
        """Made with another number of devices each time."""
        name = self.dice.choice(_CLAIMS)
        if self.world.find("ResourceClaim", name) is None:
            built = a_claim(name).exactly(
                "r", self.dice.choice((CLASS, SERVED)), count=self.dice.randint(1, 3)
            )
            self.world.create(built.build())
        else:
            self.world.delete("ResourceClaim", name)

    def edit_claim(self) -> None:
        """Any, those too that were made for a pod: to whom it belongs, for which entry it is, what it asks for."""
        name, dice = self._any("ResourceClaim"), self.dice
        if self._chance(0.5):
            owners = [self._pod_as_owner()] if self._chance(0.5) else []
            self.world.change("ResourceClaim", name, "metadata", "ownerReferences", value=owners)
        elif self._chance(0.5):
            entries = {_CLAIM_OF_ENTRY: dice.choice(("dev", "other", None))}
            self.world.annotate(name, TENANT, "ResourceClaim", **entries)
        else:
            spec = a_claim(name).exactly("r", CLASS, count=dice.randint(1, 3)).build()["spec"]
            self.world.change("ResourceClaim", name, "spec", value=spec)

    def _pod_as_owner(self) -> dict[str, Any]:
        name = self._pod()
        uid = self.world.get("Pod", name)["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}

    def take_claim_away(self) -> None:
        """Deleted, and the finalizer patched away that keeps it while its pods run."""
        name = self._any("ResourceClaim")
        self.world.delete("ResourceClaim", name)
        stored = self.world.find("ResourceClaim", name)
        if stored is not None:
            self.world.gone(stored)

    def template(self) -> None:
        """Deleted and made anew with another number."""
        name = self.dice.choice(_TEMPLATES)
        if self.world.find("ResourceClaimTemplate", name) is not None:
            self.world.delete("ResourceClaimTemplate", name)
        if self._chance(0.8):
            built = a_template(name).exactly("r", CLASS, count=self.dice.randint(1, 2))
            self.world.create(built.build())

    def delete(self) -> None:
        """With whatever grace, and by force."""
        grace = self.dice.choice((0, 1, 30, 300, 301, YEAR_S, None))
        self.world.delete("Pod", self._pod(), grace_s=grace)

    # -- what the cluster does meanwhile -------------------------------------------------------------------------

    def cluster(self) -> None:
        what = self.dice.random()
        if what < 0.5:
            self.world.settle()
        elif what < 0.7:
            self.world.control()
        elif what < 0.75:
            self.world.restart()
        else:
            running = [view.name for view in self.world.running()]
            if running:
                self.world.end(self.dice.choice(running), self.dice.choice(("Succeeded", "Failed")))

    def make_room(self) -> None:
        """Half of all pods end, one way or another."""
        for raw in self.world.all("Pod"):
            name = raw["metadata"]["name"]
            if self._chance(0.5):
                continue
            if raw["spec"].get("nodeName"):
                self.world.end(name)
            if f"{HOME}/{name}" in self.world.objects["Pod"]:
                self.world.gone(self.world.get("Pod", name))
        self.world.collect()

    def honest(self, number: int) -> str:
        """Somebody else of the same queue asks for a card, before all others."""
        name = f"honest{number}"
        self.world.create(WAYS["card"].named(name).priority(9).build())
        return name
