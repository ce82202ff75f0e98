"""A row of the setting `workloads`: a kind of somebody else that makes pods from templates of its own."""

import re
from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool, StrictStr

from core.settings.section import SECTION
from core.settings.values import listed

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_STEP: Final = "[A-Za-z_][-A-Za-z0-9_]*"
_KEY: Final = f"^{_STEP}(\\.{_STEP})*$"
_MOST_PATHS: Final = 20

TAKEN: Final = frozenset(
    {
        *(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
        *(("batch", kind) for kind in ("Job", "CronJob")),
        ("batch.volcano.sh", "Job"),
        ("flow.volcano.sh", "JobTemplate"),
        *(("scheduling.volcano.sh", kind) for kind in ("Queue", "PodGroup")),
        *(("resource.k8s.io", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
        ("jobset.x-k8s.io", "JobSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        *(
            ("kubeflow.org", kind)
            for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
        ),
        *(("trainer.kubeflow.org", kind) for kind in ("TrainingRuntime", "ClusterTrainingRuntime")),
        ("serving.kserve.io", "InferenceService"),
        *(
            ("argoproj.io", kind)
            for kind in (
                *("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow"),
                "Rollout",
            )
        ),
        ("sparkoperator.k8s.io", "SparkApplication"),
    }
)
"""The kinds that are known without any setting, by group and kind."""


def _matching(pattern: str, problem: str) -> tuple[AfterValidator, object]:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError(problem)
        return value

    return AfterValidator(check), Field(json_schema_extra={"pattern": pattern})


def _each(pattern: str, problem: str, *, least: int) -> tuple[AfterValidator, object]:
    compiled = re.compile(pattern)

    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        if not least <= len(values) <= _MOST_PATHS:
            raise ValueError(f"must hold {least} to {_MOST_PATHS} of them")
        if any(compiled.fullmatch(value) is None for value in values):
            raise ValueError(problem)
        return tuple(dict.fromkeys(values))

    return AfterValidator(check), Field(json_schema_extra={"items": {"type": "string", "pattern": pattern}})


_PLACE: Final = f"^spec(\\.{_STEP}(\\[\\]|\\{{\\}})?)+$"

Group = Annotated[
    StrictStr,
    *_matching(f"^{_LABEL}(\\.{_LABEL})+$", "must be an API group with a dot, such as batch.example.com"),
    Field(max_length=253),
]
Kind = Annotated[
    StrictStr,
    *_matching("^[A-Z][A-Za-z0-9]*$", "must be a kind, such as TrainingJob"),
    Field(max_length=63),
]
Resource = Annotated[
    StrictStr,
    *_matching("^[a-z][-a-z0-9]*$", "must be the lower-case plural of the kind, such as trainingjobs"),
    Field(max_length=63),
]
Places = Annotated[
    tuple[StrictStr, ...],
    BeforeValidator(listed),
    *_each(
        _PLACE,
        "must be paths from spec to a pod template, such as spec.template, spec.roles[].template or spec.roles{}.template",
        least=1,
    ),
]
Keys = Annotated[
    tuple[StrictStr, ...],
    BeforeValidator(listed),
    *_each(_KEY, "must be fields beside the template, such as replicas or parallelism", least=0),
]
Place = Annotated[
    StrictStr,
    *_matching(f"^(spec(\\.{_STEP})+)?$", "must be a path from spec to one field, such as spec.queue"),
]


class WorkloadRow(BaseModel):
    """A kind that is not in the table of workloads: where its pod templates are, and how many pods each makes."""

    model_config = SECTION

    group: Group
    """The API group."""
    kind: Kind
    """The kind."""
    resource: Resource
    """Its lower-case plural, as in the URL of the API server."""
    templates: Places
    """Where its pod templates are: `[]` stands for every item of a list, `{}` for every value of a map."""
    replicas: Keys = ("replicas",)
    """How many pods each makes: the product of these fields of what the template stands in; none means one pod."""
    queue: Place = ""
    """Where it names the queue of its pods, if it does."""
    gang: Place = ""
    """Where it says how many of its pods start together, if it does."""
    cluster_scoped: StrictBool = False
    """Whether its objects are in no namespace."""


def _told_apart(rows: Iterable[WorkloadRow]) -> tuple[WorkloadRow, ...]:
    """Raises ValueError for a kind that has a row already, here or in the table."""
    found: dict[tuple[str, str], WorkloadRow] = {}
    for row in rows:
        key = row.group, row.kind
        if key in TAKEN:
            raise ValueError(f"must not name {row.kind} of {row.group}, which is known without it")
        if key in found:
            raise ValueError(f"must not name {row.kind} of {row.group} twice")
        found[key] = row
    return tuple(found.values())


WorkloadRows = Annotated[tuple[WorkloadRow, ...], AfterValidator(_told_apart)]
