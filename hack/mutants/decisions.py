"""What counts, and in which order pods are decided on."""

from typing import Final

from hack.mutants.guard import Guard

_PLAN: Final = "tests/unit/core/plan"
_BINDING: Final = "tests/unit/core/binding"

DECISIONS: Final = (
    Guard(
        "a gang is let in whole or not at all",
        "core/plan/gang.py",
        "        return len(self._members) - frame.position < wanted or frame.state in self._hopeless\n",
        "        return frame.state in self._hopeless\n",
        ("tests/property/test_gang_search.py", f"{_PLAN}/test_gangs.py", f"{_PLAN}/test_gang_decisions.py"),
    ),
    Guard(
        "a gang is decided on as it is at its own turn",
        "core/plan/course.py",
        "        now = renewed(self._ledger, unit)\n        if now is None:\n            turn.leaves",
        "        now = unit\n        if now is None:\n            turn.leaves",
        (f"{_PLAN}/test_gangs_meanwhile.py",),
    ),
    Guard(
        "a gang that becomes another one while it is tried is tried anew",
        "core/plan/trial.py",
        "        if ledger.groups.version(self._group) != self._version:\n            raise OvertakenError\n",
        "",
        (f"{_PLAN}/test_gangs_meanwhile.py",),
    ),
    Guard(
        "who stands in for a pod is no member of its gang",
        "core/binding/stand_ins.py",
        ', owner=None, gang=None, scheduling_group="")',
        ")",
        (f"{_BINDING}/test_stand_ins.py",),
    ),
    Guard(
        "an heir holds what a bind of it may take that nobody lifted",
        "core/binding/stand_ins.py",
        "        yield _unbooked(pod, cards[:1], ledger)\n",
        "",
        (f"{_BINDING}/test_heirs.py",),
    ),
    Guard(
        "what is held for an heir is not in its own way",
        "core/binding/binder.py",
        "        with self._inherited.aside(pod.uid):\n            return",
        "        if True:\n            return",
        (f"{_BINDING}/test_heirs.py",),
    ),
    Guard(
        "a turn is about as many as wait when it begins",
        "core/plan/course.py",
        "line.after(place, wish) if count > 1 else None\n",
        "line.after(place, wish)\n",
        (f"{_PLAN}/test_newcomers.py",),
    ),
    Guard(
        "a pass waits for the queues that it began with and for no other",
        "core/plan/rotation.py",
        "        (self._aside if name in self._owed else self._guests)[name] = course\n",
        "        self._aside[name] = course\n",
        (f"{_PLAN}/test_endless_changes.py",),
    ),
    Guard(
        "an unfinished gang comes first",
        "core/plan/lift.py",
        "            ranks[name] = name not in first, -priority",
        "            ranks[name] = False, -priority",
        (f"{_PLAN}/test_gang_precedence.py", f"{_PLAN}/test_unfinished.py"),
    ),
    Guard(
        "a queue above is asked as well",
        "core/queues/check.py",
        "        return self._short_above(card, milli) if self.above else None\n",
        "        return None\n",
        ("tests/unit/core/plan/test_levels.py", "tests/property/test_levels.py"),
    ),
    Guard(
        "who runs on for a year after its deletion counts",
        "core/stage.py",
        "        return pod.grace_s <= self._max_free_grace_s\n",
        "        return True\n",
        ("tests/unit/core/test_stage.py",),
    ),
    Guard(
        "claims that were not counted are asked for at the bind",
        "core/binding/binder.py",
        "        return self._asks_devices(pod) and not self._ledger.devices.all_counted(pod)\n",
        "        return False\n",
        (
            f"{_BINDING}/test_binder_ungated.py",
            f"{_BINDING}/test_binder.py",
            "tests/unit/controller/test_binding.py",
        ),
    ),
    Guard(
        "keys of ours stay in a Queue's status",
        "core/admission/queues.py",
        "        if key not in have and key not in foreign\n",
        "        if key not in have and key in foreign\n",
        ("tests/unit/core/admission/test_admission_queues.py",),
    ),
    Guard(
        "a DeviceClass that is away for a moment frees nothing",
        "core/dra/extended.py",
        "                self._orphaned[resource] = last\n",
        "                pass\n",
        ("tests/unit/core/dra/test_dra_extended.py", "tests/unit/controller/test_class_grace.py"),
    ),
    Guard(
        "devices in use count",
        "core/dra/quotas.py",
        "            if used(key) + amount > limit:\n",
        "            if amount > limit:\n",
        (f"{_PLAN}/test_claims.py",),
    ),
    Guard(
        "the first of a fifo queue holds up the others",
        "core/plan/turn.py",
        "            elif self.fifo and self.head is None and not stuck and _in_line(decision, of_gang=of_gang):\n",
        "            elif self.fifo and self.head is not None and not stuck and _in_line(decision, of_gang=of_gang):\n",
        (f"{_PLAN}/test_lift.py",),
    ),
    Guard(
        "who waits for something of its own does not",
        "core/plan/turn.py",
        "        reasons.LIFT_REFUSED,\n",
        "",
        (f"{_PLAN}/test_fifo.py",),
    ),
    Guard(
        "who came with a node goes by who may use a queue now",
        "core/queues/access_book.py",
        ", *self._past.get(_QUEUE + name)]\n",
        "]\n",
        ("tests/unit/core/queues/test_access.py",),
    ),
)
