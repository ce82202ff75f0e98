"""What one lift may be written for, how it is written, and by how many leaders."""

from typing import Final

from hack.mutants.guard import Guard

_LIFTING: Final = (
    "tests/unit/controller/test_lift_writing.py",
    "tests/unit/controller/test_lift_refusals.py",
    "tests/unit/controller/test_lift_answers.py",
)
_PLAN: Final = "tests/unit/core/plan"
_HOOK: Final = ("tests/unit/controller/test_binding.py", "tests/unit/controller/test_grants.py")
_ELECTION: Final = (
    "tests/unit/kube/test_election.py",
    "tests/unit/kube/test_election_outages.py",
    "tests/unit/kube/test_election_faults.py",
)

WRITES: Final = (
    # What one lift may be written for.
    Guard(
        "a lift is booked at once",
        "core/plan/judge.py",
        "                ledger.assume(lifted)\n",
        "                pass\n",
        (f"{_PLAN}/test_lift_choices.py", "tests/property/test_quota_invariants.py"),
    ),
    Guard(
        "who is let in like another one is booked at once",
        "core/plan/judge.py",
        "                ledger.let_in(lifted)\n",
        "                pass\n",
        (f"{_PLAN}/test_lift.py", "tests/property/test_quota_invariants.py"),
    ),
    Guard(
        "the patch names the uid",
        "core/plan/patch.py",
        '        {"op": "test", "path": "/metadata/uid", "value": pod.uid},\n',
        "",
        (f"{_PLAN}/test_lift.py", f"{_PLAN}/test_placement.py"),
    ),
    Guard(
        "the patch names the resourceVersion",
        "core/plan/patch.py",
        '        {"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version},\n',
        "",
        (f"{_PLAN}/test_lift.py", *_LIFTING),
    ),
    Guard(
        "the patch names the gate",
        "core/plan/patch.py",
        '        {"op": "test", "path": f"{gate}/name", "value": names.GATE},\n',
        "",
        (f"{_PLAN}/test_lift.py", *_LIFTING),
    ),
    Guard(
        "a lift is narrowed to its card",
        "core/plan/patch.py",
        "        *narrowing(pod.affinity, requirement),\n",
        "",
        (f"{_PLAN}/test_placement.py", f"{_PLAN}/test_lift.py"),
    ),
    Guard(
        "the queue is on record",
        "core/queues/attribution.py",
        "    return Attribution(queue, named=True) if queue else None\n",
        "    return None\n",
        ("tests/unit/core/queues/test_queue_record.py",),
    ),
    # Writing it.
    Guard(
        "nothing is written without a term",
        "controller/lift_writing.py",
        "        if self._term is None or not self._term.valid():\n            return RETRY_MAX_S\n",
        "",
        ("tests/unit/controller/test_lifting.py",),
    ),
    Guard(
        "a pod that has changed is decided on again",
        "controller/flight.py",
        "        return seen is not None and seen.resource_version != self.lift.pod.resource_version\n",
        "        return seen is None\n",
        (*_LIFTING, "tests/unit/controller/test_lifting.py"),
    ),
    Guard(
        "a decision is checked before each repetition",
        "controller/lift_writing.py",
        "        flight.void = self._planner is not None and not self._planner.stands(flight.lift)\n",
        "        flight.void = False\n",
        _LIFTING,
    ),
    Guard(
        "what was not answered stays booked while it may be stored",
        "controller/lift_writing.py",
        "        flight.keep_open(error, now)\n",
        "",
        (*_LIFTING, "tests/unit/controller/test_writers_at_random.py"),
    ),
    Guard(
        "after a lost answer the pod is read",
        "controller/lift_writing.py",
        "        flight.look, now = True, asyncio",
        "        now = asyncio",
        (*_LIFTING, "tests/unit/controller/test_writers_at_random.py"),
    ),
    Guard(
        "who may have to wait for others is not lifted alone",
        "controller/lift_writing.py",
        "        if question is not None:\n            return await self._ask(key, flight, question)\n",
        "",
        ("tests/unit/controller/test_lone_lifts.py",),
    ),
    Guard(
        "whose lift may be refused is asked about first",
        "controller/refused_lifts.py",
        "        return (key in self._refusals or key[0] in self._doubtful) and not self._is_cleared(key)\n",
        "        return False\n",
        ("tests/unit/controller/test_trial_lifts.py",),
    ),
    Guard(
        "members of a gang wait for the answers about each other",
        "controller/asked_groups.py",
        "            self._asked.setdefault(group, set()).add(key)\n",
        "            pass\n",
        ("tests/unit/controller/test_trial_gangs.py",),
    ),
    # Two leaders.
    Guard(
        "a new leader waits until nothing of the former one can be stored",
        "controller/leading.py",
        "            await asyncio.sleep(shared_s + QUIET_S)\n",
        "            await asyncio.sleep(shared_s)\n",
        ("tests/unit/controller/test_leading.py",),
    ),
    Guard(
        "who leads by a new Lease waits for the end of a term under a deleted one",
        "controller/leading.py",
        "            await asyncio.sleep(shared_s + QUIET_S)\n",
        "            await asyncio.sleep(QUIET_S)\n",
        ("tests/unit/controller/test_leading.py",),
    ),
    Guard(
        "a new leader sees all that was written before it decides",
        "controller/leading.py",
        "            await self._catch_up()\n",
        "",
        ("tests/unit/controller/test_leading.py",),
    ),
    Guard(
        "a term that was lost ends before the work does",
        "kube/election.py",
        "                # Somebody else may lead by now: the work writes nothing any more, not even while it ends.\n"
        "                term.end()\n",
        "                pass\n",
        _ELECTION,
    ),
    Guard(
        "a process that was deaf does not go on with its term",
        "kube/election.py",
        "        if not term.valid():\n"
        "            # This process was deaf. Whoever asked the term meanwhile has given up what it did, so it cannot go on.\n"
        "            return False\n",
        "",
        _ELECTION,
    ),
    Guard(
        "a deleted Lease is its holder's until its time is over",
        "kube/election.py",
        "        lease = self._lease or self._vanished\n        if lease is None or",
        "        lease = self._lease\n        if lease is None or",
        _ELECTION,
    ),
    Guard(
        "what the former leader may have granted is given to nobody",
        "controller/binding.py",
        "        if rival is not None:\n",
        "        if rival is not None and not self.leading:\n",
        ("tests/unit/controller/test_inheritance.py", *_HOOK),
    ),
)
