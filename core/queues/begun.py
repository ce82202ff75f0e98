"""Which groups have begun, by what the cluster shows."""

from core.objects import Pod
from core.queues.group_minimum import counts
from core.stage import Stage, Stages


class Begun:
    """How many members of each gang or PodGroup are seen lifted or bound and have not ended, brought up to date pod by pod.

    Lifts under way do not count, nor do members that ask for nothing of ours. So no question about a group costs as much as it
    has members: while none of thousands is in, it is asked for each of them.
    """

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._in: dict[str, int] = {}

    def put(self, old: Pod | None, new: Pod | None) -> None:
        """Takes in what is seen of a pod now instead of what was seen of it before; None where it was, or is, not there."""
        was, now = self._group_begun_by(old), self._group_begun_by(new)
        if was == now:
            return
        if was:
            self._in[was] -= 1
            if not self._in[was]:
                del self._in[was]
        if now:
            self._in[now] = self._in.get(now, 0) + 1

    def by_others(self, pod: Pod) -> int:
        """How many other members of the group of a pod, which is given as it is seen, are in."""
        return self._in.get(pod.group_key, 0) - bool(self._group_begun_by(pod))

    def _group_begun_by(self, pod: Pod | None) -> str:
        """The key of the group that a pod is in with; empty where there is none."""
        key = pod.group_key if pod is not None else ""
        if pod is None or not key or self._stages.of(pod) not in (Stage.RESERVED, Stage.ALLOCATED):
            return ""
        return key if counts(pod, self._stages) else ""
