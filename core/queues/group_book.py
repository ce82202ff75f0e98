"""Every PodGroup's members by their standing, so that no question about a group costs as much as it has members."""

from collections.abc import Collection

from core.objects import Group, Pod
from core.queues.group_minimum import Minimum, Progress, Standing, Tally, minimum_of
from core.queues.journal import Journal
from core.sharded import Sharded
from core.stage import Stages


class GroupBook:
    """The tallies of all groups, brought up to date pod by pod; groups that pods name and that do not exist are tallied too."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._minimums: dict[str, Minimum] = {}
        self._tallies: dict[str, Tally] = {}
        self._members = Sharded[tuple[str, Standing]]()
        self._unfinished: dict[str, None] = {}
        self._short: dict[str, None] = {}
        self._versions: dict[str, int] = {}
        self._version = 0
        self.changed = Journal[str]()
        """Those of the groups that are or were `short` of which a member, or what it takes to start them, was looked at anew."""

    @property
    def short(self) -> Collection[str]:
        """The groups that are short, see Progress, whether they have the members for it or not.

        As `namespace/name`. A trial, or a lift that is not written yet, counts.
        """
        return self._short.keys()

    @property
    def unfinished(self) -> Collection[str]:
        """The groups that were let in, stopped short of their minimum, and have the members for it, as `namespace/name`."""
        return self._unfinished.keys()

    def progress(self, group: Group) -> Progress:
        """How far a group is from its minimum."""
        tally = self._tallies.get(group.key) or Tally()
        return tally.progress(self._minimums.get(group.key) or minimum_of(group))

    def version(self, key: str) -> int:
        """A number that differs after all that makes a group lack more or fewer members; who waits makes no difference."""
        return self._versions.get(key, 0)

    def lacks(self, key: str) -> int:
        """How many members a group lacks until its minimum, those of tasks with a minimum of their own among them."""
        minimum, tally = self._minimums.get(key), self._tallies.get(key)
        if minimum is None or tally is None:
            return 0
        progress = tally.progress(minimum)
        return max(progress.missing, sum(progress.missing_tasks.values()))

    def priority(self, group: Group) -> int:
        """The highest priority of its members that have not ended; 0 where there is none."""
        tally = self._tallies.get(group.key)
        return tally.priority if tally is not None else 0

    def put_group(self, group: Group) -> None:
        """Takes in a PodGroup."""
        minimum = minimum_of(group)
        if self._minimums.get(group.key) != minimum:
            self._minimums[group.key] = minimum
            self._renew(group.key)
        self._judge(group.key)

    def drop_group(self, key: str) -> None:
        """Takes out a PodGroup; nothing holds its pods together any more."""
        if self._minimums.pop(key, None) is not None:
            self._renew(key)
        self._judge(key)

    def put_pod(self, pod: Pod) -> bool:
        """Takes in a pod in its present state. Returns whether its standing in its group changed."""
        old = self._members.get(pod.uid)
        group = pod.group_key
        if not group:
            return old is not None and self.drop_pod(pod.uid)
        new = group, Standing.of(pod, self._stages)
        if old == new:
            if new[0] in self._short:
                # What it says of itself is the same, yet it may have a node now or be charged elsewhere.
                self.changed.note(new[0])
            return False
        if old is not None:
            self._take_out(pod.uid, old)
        self._members.add(pod.uid, new)
        key, standing = new
        self._tallies.setdefault(key, Tally()).add(standing, 1)
        self._judge(key)
        self._compare(old, new)
        return True

    def drop_pod(self, uid: str) -> bool:
        """Takes out a pod; unknown UIDs are fine. Returns whether it was a member of a group."""
        old = self._members.get(uid)
        if old is None:
            return False
        self._take_out(uid, old)
        self._compare(old, None)
        return True

    def _take_out(self, uid: str, member: tuple[str, Standing]) -> None:
        self._members.pop(uid, None)
        key, standing = member
        tally = self._tallies[key]
        tally.add(standing, -1)
        if not tally.priorities:
            del self._tallies[key]
            self._versions.pop(key, None)
        self._judge(key)

    def _compare(self, old: tuple[str, Standing] | None, new: tuple[str, Standing] | None) -> None:
        """Takes note of the groups to which a pod has come to be something else."""
        was, is_ = _decisive(old), _decisive(new)
        if was != is_:
            for key in {each[0] for each in (was, is_) if each is not None}:
                self._renew(key)

    def _renew(self, key: str) -> None:
        self._version += 1
        if key in self._tallies:
            self._versions[key] = self._version
        else:
            self._versions.pop(key, None)

    def _judge(self, key: str) -> None:
        was_short = key in self._short
        self._sort(key)
        if was_short or key in self._short:
            self.changed.note(key)

    def _sort(self, key: str) -> None:
        minimum, tally = self._minimums.get(key), self._tallies.get(key)
        progress = tally.progress(minimum) if minimum is not None and tally is not None else None
        _put(self._short, key, progress is not None and progress.short)
        _put(self._unfinished, key, progress is not None and progress.unfinished and progress.possible)


def _decisive(member: tuple[str, Standing] | None) -> tuple[str, str, bool, int] | None:
    """What a member that is in is to its group; None of others."""
    if member is None or not member[1].counted:
        return None
    key, standing = member
    return key, standing.task, standing.live, standing.together


def _put(keys: dict[str, None], key: str, belongs: bool) -> None:
    if belongs:
        keys[key] = None
    else:
        keys.pop(key, None)
