"""What a bind may be granted."""

from typing import Final

from hack.mutants.guard import Guard

_BINDING: Final = "tests/unit/core/binding"
_HOOK: Final = ("tests/unit/controller/test_binding.py", "tests/unit/controller/test_grants.py")

BINDS: Final = (
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
        "            if not ledger.sums_settled:\n",
        "            if known is None:\n",
        ("tests/unit/controller/test_unsettled_binding.py", *_HOOK),
    ),
    Guard(
        "a bind that is begun again and again by others on its node goes first",
        "controller/binding.py",
        "            self._precedence.claim(node, pieces)\n",
        "            pass\n",
        ("tests/unit/controller/test_searching_binds.py",),
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
        "if other != uid and gives_way(led[other].pod, task))",
        "if other != uid or gives_way(led[other].pod, task))",
        (f"{_BINDING}/test_binder_promised.py",),
    ),
    Guard(
        "where those on their way had room at once is kept for the next bind",
        "core/queues/ledger.py",
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
)
