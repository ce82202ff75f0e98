"""What keeps quota from being exceeded, and how each is taken out."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Guard:
    """`old` stands once in `file`; with `new` in its place the guard is gone, and one of `tests` has to fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


_LIFTING: Final = (
    "tests/unit/controller/test_lift_writing.py",
    "tests/unit/controller/test_lift_refusals.py",
    "tests/unit/controller/test_lift_answers.py",
)
_PLAN: Final = "tests/unit/core/plan"
_BINDING: Final = "tests/unit/core/binding"
_HOOK: Final = ("tests/unit/controller/test_binding.py", "tests/unit/controller/test_grants.py")
_ELECTION: Final = (
    "tests/unit/kube/test_election.py",
    "tests/unit/kube/test_election_outages.py",
    "tests/unit/kube/test_election_faults.py",
)

GUARDS: Final = (
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
    # Two leaders.
    Guard(
        "a new leader waits until nothing of the former one can be stored",
        "controller/leading.py",
        "            await asyncio.sleep(QUIET_S)\n",
        "",
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
    # Binds.
    Guard(
        "a grant is booked",
        "core/binding/binder.py",
        "        self._ledger.assume(bound)\n        return bound\n",
        "        return bound\n",
        (f"{_BINDING}/test_binder.py", *_HOOK, "tests/property/test_bind_invariants.py"),
    ),
    Guard(
        "a grant is asked for the term once more",
        "controller/binding.py",
        "        if not self.leading:\n"
        "            # The process may have been stopped for a while: somebody else may have given the same cards to another pod.\n"
        "            return None\n",
        "",
        _HOOK,
    ),
    Guard(
        "nothing is granted by sums that are still to be settled",
        "controller/binding.py",
        "            self._caches.ledger.sums_settled or self._binder.passes_unasked(known, target.node)\n",
        "            known is not None\n",
        ("tests/unit/controller/test_unsettled_binding.py", *_HOOK),
    ),
    Guard(
        "a bind that may be stored is not granted elsewhere",
        "controller/binding.py",
        "        return Refusal(reasons.POD_ALREADY_BOUND, text)\n",
        "        return self._binder.decide(view, target.node)\n",
        _HOOK,
    ),
    Guard(
        "a bind is granted again by its own records or not at all",
        "core/binding/binder.py",
        "        if not found.items() <= kept.items():\n",
        "        if not found:\n",
        ("tests/unit/controller/test_asked_again.py", *_HOOK),
    ),
    Guard(
        "mGPU cards that a node has lost are not granted again",
        "core/binding/binder.py",
        "        return short or lost_shares(again, self._shares(again), node, on_node, self._settings) or kept\n",
        "        return short or kept\n",
        ("tests/unit/controller/test_asked_again.py", *_HOOK),
    ),
    Guard(
        "a bind is of the pod that is meant",
        "core/binding/review.py",
        "    if target.uid and target.uid != pod.uid:\n",
        "    if target.uid and not pod.uid:\n",
        (f"{_BINDING}/test_review.py", *_HOOK),
    ),
    Guard(
        "a pod at the gate is not bound",
        "core/binding/review.py",
        "    if pod.gates:\n",
        "    if pod.gates and pod.bound:\n",
        (f"{_BINDING}/test_review.py", *_HOOK),
    ),
    Guard(
        "records that a Binding brings along are dropped",
        "core/binding/review.py",
        "if not names.is_protected(key)}",
        "if key or not names.is_protected(key)}",
        (f"{_BINDING}/test_review.py", *_HOOK),
    ),
    Guard(
        "who was never lifted is asked for quota at the bind",
        "core/binding/quota.py",
        "            or balance.card_shortfall(asked.card, asked.milli)\n            or balance.share_shortfall(demand.shares)\n",
        "            or balance.share_shortfall(demand.shares)\n",
        (f"{_BINDING}/test_binder_never_lifted.py", f"{_BINDING}/test_binder.py", *_HOOK),
    ),
    Guard(
        "another card than the one lifted for is asked for quota",
        "core/binding/quota.py",
        "        if short is not None:\n            lifted = ",
        "        if short is not None and not short.message:\n            lifted = ",
        (f"{_BINDING}/test_binder.py", "tests/unit/controller/test_card_binding.py"),
    ),
    Guard(
        "room that is booked on a node is given to no other pod",
        "core/queues/promises.py",
        "if uid != pod.uid and gives_way(led[uid].pod, task))",
        "if uid != pod.uid or gives_way(led[uid].pod, task))",
        (f"{_BINDING}/test_binder_promised.py",),
    ),
    Guard(
        "where those on their way had room at once is kept for the next bind",
        "core/queues/books.py",
        "        if len(places) > 1:\n",
        "        if not places:\n",
        (f"{_BINDING}/test_binder_crowded.py",),
    ),
    Guard(
        "the gate goes by where the binds found room for all on their way",
        "core/plan/share_nodes.py",
        "        if state is not None or not places:\n",
        "        if state is not None or not places or asks:\n",
        (f"{_BINDING}/test_binder_crowded.py",),
    ),
    # What counts.
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
        "        now = renewed(self._ledger, unit)\n        turn.put_off",
        "        now = unit\n        turn.put_off",
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
)
