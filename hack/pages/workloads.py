"""docs/workloads.md, made from the table of workloads: `python -m hack.pages.workloads` writes it."""

from pathlib import Path
from typing import Final

from core.workloads import TABLE, Workload

PAGE: Final = Path(__file__).parents[2] / "docs" / "workloads.md"

_INTRODUCTION: Final = """\
# Workloads

Pods are held, charged and lifted whoever makes them. Of the kinds below the pod templates are known as well, so that a mistake
in one is refused at `kubectl apply`, with its place in the object, and not in an event of some controller; `cardquota check`
says the same of files, and `cardquota plan` counts the pods that a new object would make. Only templates that a write changes
are judged. A kind that a cluster does not serve costs nothing. This page is made from the table in
[`core/workloads.py`](../core/workloads.py) by `python -m hack.pages.workloads`; a test compares the two.

Card, queue and everything else stand on the pod template, save where the table says otherwise. The annotations of an
InferenceService are those of its pods; of a SparkApplication, `annotations` and `gpu` beside a template count as well; a step
of an Argo workflow is a pod when it has a `container`, `script` or `containerSet`. How many pods a workflow makes only its run
tells, so `plan` makes none for it; neither does it for what is a template of workloads itself.

| kind | pod templates | pods | queue | gang |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = "\n".join(map(_row, TABLE))
    sources = "\n".join(f"- {line}" for line in dict.fromkeys(row.source for row in TABLE if row.source))
    return f"{_INTRODUCTION}{rows}\n\nLooked up in:\n\n{sources}\n"


def _row(row: Workload) -> str:
    places = ", ".join(f"`{path}`" for path in row.templates)
    others = " | ".join(f"`{text}`" if text else "" for text in (row.queue, row.gang))
    return f"| {row.kind} (`{row.group}`) | {places} | {row.pods} | {others} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
