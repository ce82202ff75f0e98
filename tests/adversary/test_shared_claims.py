"""A claim that pods share is had for nothing only where one of them was asked for it."""

from tests.adversary.attacks import Trial
from tests.adversary.ways import CLASS, OWN, WAYS
from tests.builders.claims import a_claim


def test_a_claim_of_a_pod_that_comes_with_its_node_pays_for_nobody_else() -> None:
    """Nobody has its devices until one of the others starts."""
    trial = Trial("claim")
    world = trial.world
    world.create(a_claim("many").exactly("r", CLASS, count=4).build())
    decoy = WAYS["claim"].named("decoy", OWN).claim("dev", name="many")
    world.create(decoy.put("spec", "nodeName", value="d").build())
    world.settle()
    world.create(WAYS["claim"].named("p", OWN).claim("dev", name="many").build())
    world.settle()
    assert list(world.running()) == []
