"""The node labels that a pod with mGPU shares requires, so that the scheduler looks only where it can be served."""

from core import names
from core.affinity import Expression, NodeRequirement
from core.mgpu.ask import FIXED_SHARE, POLICIES, MgpuAsk
from core.mgpu.node import NODE_TYPE


def node_requirement(ask: MgpuAsk) -> NodeRequirement:
    """The node type always and, unless the pod takes whole cards of any node, the compute policy.

    A node without the policy label serves fixed-share, hence a second alternative there. "None of the other policies"
    says both in one expression; it lets through labels that nobody defined, which the binding hook then refuses.
    """
    kind = Expression(names.MGPU_NODE_TYPE_LABEL, "In", (NODE_TYPE,))
    if ask.any_policy:
        return NodeRequirement.all_of(kind)
    labelled = Expression(names.MGPU_POLICY_KEY, "In", (ask.policy,))
    if ask.policy != FIXED_SHARE:
        return NodeRequirement.all_of(kind, labelled)
    unlabelled = Expression(names.MGPU_POLICY_KEY, "DoesNotExist")
    others = tuple(policy for policy in POLICIES if policy != ask.policy)
    return NodeRequirement(
        ((kind, labelled), (kind, unlabelled)), (kind, Expression(names.MGPU_POLICY_KEY, "NotIn", others))
    )
