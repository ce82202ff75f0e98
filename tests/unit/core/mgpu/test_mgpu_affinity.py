"""Which nodes an mGPU pod is narrowed to."""

import pytest

from core import names
from core.affinity import Conjunction, Expression
from core.mgpu.ask import MgpuAsk
from core.mgpu.node import node_requirement
from tests.unit.core.mgpu.cases import a_normal_ask, an_ask

KIND = Expression(names.MGPU_NODE_TYPE_LABEL, "In", ("mgpu",))
UNLABELLED = Expression(names.MGPU_POLICY_KEY, "DoesNotExist")
NO_OTHER = Expression(names.MGPU_POLICY_KEY, "NotIn", ("guaranteed-burst-share", "native-burst-share"))


def policy_in(policy: str) -> Expression:
    return Expression(names.MGPU_POLICY_KEY, "In", (policy,))


@pytest.mark.parametrize(
    ("ask", "alternatives", "implied"),
    [
        (a_normal_ask((1, 100, None)), ((KIND,),), (KIND,)),
        (a_normal_ask((1, 100, None), policy="native-burst-share"), ((KIND,),), (KIND,)),
        (
            a_normal_ask((1, 50, 1024)),
            ((KIND, policy_in("fixed-share")), (KIND, UNLABELLED)),
            (KIND, NO_OTHER),
        ),
        (
            a_normal_ask((1, 50, 1024), policy="guaranteed-burst-share"),
            ((KIND, policy_in("guaranteed-burst-share")),),
            (KIND, policy_in("guaranteed-burst-share")),
        ),
        (
            an_ask((2, 50, 1024)),
            ((KIND, policy_in("native-burst-share")),),
            (KIND, policy_in("native-burst-share")),
        ),
        (
            an_ask((2, 100, None)),
            ((KIND, policy_in("native-burst-share")),),
            (KIND, policy_in("native-burst-share")),
        ),
    ],
)
def test_the_type_always_and_the_policy_unless_it_is_whole_cards_only(
    ask: MgpuAsk, alternatives: tuple[Conjunction, ...], implied: Conjunction
) -> None:
    """A missing policy label is fixed-share."""
    found = node_requirement(ask)
    assert (found.alternatives, found.implied) == (alternatives, implied)
