"""docs/workloads.md, made from the table of workloads: `python -m hack.pages.workloads` writes it."""

from pathlib import Path
from typing import Final

from core.workloads import TABLE, Workload

PAGE: Final = Path(__file__).parents[2] / "docs" / "workloads.md"

_INTRODUCTION: Final = """\
# Workloads

[中文](zh/workloads.md)

Pods are held, charged and lifted whoever makes them. Of the kinds below the pod templates are known as well, so that a mistake
in one is refused at `kubectl apply`, with its place in the object, and not in an event of some controller; `cardquota check`
says the same of files, and `cardquota plan` counts the pods that a new object would make. Only templates that a write changes
are judged. A kind that a cluster does not serve costs nothing. This page is made from the table in
[`core/workloads.py`](../core/workloads.py) by `python -m hack.pages.workloads`; a test compares the two.

Card, queue and everything else stand on the pod template, save where the table says otherwise. The annotations of an
InferenceService are those of its pods; of a SparkApplication, `annotations` and `gpu` beside a template count as well; a step
of an Argo workflow is a pod when it has a `container`, `script` or `containerSet`. How many pods a workflow makes only its run
tells, so `plan` makes none for it; neither does it for what is a template of workloads itself.

A part of some pods comes from elsewhere: with an InferenceService from its ServingRuntime, with a TrainingRuntime from each
TrainJob, with Argo from parameters and `podSpecPatch`, with a SparkApplication from `sparkConf`. What these kinds lack, such as a
card's resource, and texts with `{{` are left to the review of the pods themselves; what is wrong in any case, such as a malformed
card name or a closed queue, is refused here too.

A template may name the [gang](gangs.md#gangs-without-a-podgroup) of its pods; the last column says whose pods are one gang then.

| kind | pod templates | pods | queue | gang | one gang by annotations |
|---|---|---|---|---|---|
"""

EXAMPLE: Final = """\
workloads:
- group: batch.example.com
  kind: TrainingJob
  resource: trainingjobs
  templates: ["spec.roles[].template"]
  replicas: [replicas]
  queue: spec.queue
  gang: spec.minAvailable
"""
"""Settings with a row."""

MANIFEST: Final = """\
apiVersion: batch.example.com/v1
kind: TrainingJob
metadata: {name: train, namespace: ml}
spec:
  queue: research
  minAvailable: 3
  roles:
  - name: leader
    replicas: 1
    template: &template
      metadata:
        annotations: {volcano.sh/card.name: NVIDIA-H200}
      spec:
        containers:
        - name: main
          image: registry.example/train
          resources: {limits: {nvidia.com/gpu: 1}}
  - name: worker
    replicas: 4
    template: *template
"""
"""An object of that kind."""

_OWN: Final = f"""\
## Kinds of your own

The setting `workloads` adds rows, for the webhook and its rules, `check`, `plan`, `can-run` and `explain`:

```yaml
{EXAMPLE}```

| key | |
|---|---|
| `group`, `kind`, `resource` | the API group, the kind, and its lower-case plural; a kind of the table above has its row already, and a second one is an error |
| `templates` | where the pod templates are, from `spec` on: `[]` stands for every item of a list, `{{}}` for every value of a map |
| `replicas` | how many pods each template makes: the product of these fields, which stand beside the template (in the item of the list, in the value of the map, else in `spec`); one where a field is not given; `[]` means one pod |
| `queue` | the field that names the queue of all its pods, if there is one; without it what stands on the templates counts |
| `gang` | the field with the number of pods that start together, if there is one: then the kind's controller is expected to make a PodGroup for them |
| `clusterScoped` | whether its objects are in no namespace |

With that, an object like this one is judged when it is applied, with paths such as
`spec.roles[1].template.metadata.annotations[volcano.sh/card.name]`; `plan` and `can-run` count five pods in the queue `research`, three of
which start together; and `explain trainingjob/ml/train` tells of its pods:

```yaml
{MANIFEST}```

As values of the chart they are also rules of the webhook; whoever changes the settings file alone has only the commands go by them.
The pods themselves are judged, held and charged in any case.
"""


def page() -> str:
    """The whole page."""
    rows = "\n".join(map(_row, TABLE))
    sources = "\n".join(f"- {line}" for line in dict.fromkeys(row.source for row in TABLE if row.source))
    return f"{_INTRODUCTION}{rows}\n\n{_OWN}\nLooked up in:\n\n{sources}\n"


def _row(row: Workload) -> str:
    places = ", ".join(f"`{path}`" for path in row.templates)
    others = " | ".join(f"`{text}`" if text else "" for text in (row.queue, row.gang))
    return f"| {row.kind} (`{row.group}`) | {places} | {row.pods} | {others} | {row.replica or 'all of it'} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
