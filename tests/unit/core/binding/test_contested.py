"""Whose bind may take something that the pod did not have before: after a change of leaders nobody else is granted that meanwhile."""

from core import names
from tests.builders import a_pod
from tests.unit.core.binding.test_binder_ungated import CLAIM, another, binder, books


def test_a_bind_of_claims_that_nobody_lifted_may_take_quota() -> None:
    ledger = books(CLAIM, another(CLAIM))
    assert not binder(ledger).certain(CLAIM.view(), "n")
    assert binder(ledger).contested(CLAIM.view())


def test_so_may_one_with_other_claims_than_were_counted() -> None:
    pod = a_pod("p").claim("dev", name="shared").charged("q")
    pod = pod.annotation(names.CLAIMS_ANNOTATION, '{"dev":{"uid":"old","deviceclass/nic":"1"}}')
    ledger = books(pod)
    assert not binder(ledger).certain(pod.view(), "n")
    assert binder(ledger).contested(pod.view())


def test_one_that_asks_for_nothing_may_not() -> None:
    pod = a_pod("p").request("cpu", 1)
    ledger = books(pod)
    assert not binder(ledger).contested(pod.view())
