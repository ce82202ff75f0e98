"""Short ways to judge a pod in the tests."""

from core import names
from core.mgpu.rules import judge
from core.objects.draft import Draft
from core.settings import Settings
from core.violations import Findings
from tests.builders import a_pod
from tests.builders.objects import PodBuilder

Amount = int | str | None


def judged(
    pod: PodBuilder, *, prefix: str = "", template: bool = False, settings: Settings | None = None
) -> Findings:
    return found_in(Draft.of(pod.build(), prefix or "spec.template." * template), settings)


def found_in(draft: Draft, settings: Settings | None = None) -> Findings:
    found = Findings()
    judge(draft, (settings or Settings()).mgpu, found)
    return found


def a_share(core: Amount, memory: Amount, counts: str | None = None) -> PodBuilder:
    """A pod of one container `main`; `counts` is the text of the annotation."""
    pod = a_pod().mgpu(core=core, memory=memory)
    if counts is None:
        return pod
    return pod.annotation(names.MGPU_MULTIPLE_ANNOTATION, counts).mgpu_policy("native-burst-share")
