"""The leader's pass where others fill the Secrets: it tells, and keeps the path, and issues nothing."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from kube import pki
from kube.authority import FORMER_S, OVERLAP_S, SETTLE_S, Authority
from kube.certificates import encoded
from kube.pki import Pair
from kube.resources import SECRETS
from kube.segments import held_in
from tests.fakes.apiserver import FakeApiServer, background
from tests.unit.kube.authority_world import FOREIGN, PLACES, PLAIN, START, World, configure
from tests.unit.kube.damaged import without_line

OLD, NEW = (pki.issue_ca(START, common_name=name) for name in ("old", "new"))


class Given(World):
    """Secrets that an administrator fills."""

    def another(self) -> Authority:
        places = replace(PLACES, given=True)
        return Authority(
            self.client,
            places,
            self._former,
            now=lambda: self.now,
            clock=lambda: self.seconds,
            metrics=self.metrics,
        )

    def give(self, name: str, issuer: Pair, *trusted: Pair, **more: bytes) -> Pair:
        """Put a pair into a Secret, and whom to trust; keys of others in it stay."""
        leaf = pki.issue_leaf(issuer, [f"{name}.svc"], self.now)
        authorities = b"".join(ca.certificate for ca in (issuer, *trusted))
        data = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authorities, **more}
        stored = self.server.objects.get(
            SECRETS.path("n", name), {"metadata": {"name": name, "namespace": "n"}}
        )
        self.server.put(SECRETS, stored | {"data": stored.get("data", {}) | encoded(data)})
        return leaf

    def give_both(self, issuer: Pair, *trusted: Pair) -> None:
        for name in ("own", "shared"):
            self.give(name, issuer, *trusted)

    def trusts(self, *authorities: Pair) -> bool:
        told = self.told()
        known: Sequence[Pair] = (OLD, NEW)
        return [ca.certificate.strip() in told for ca in known] == [ca in authorities for ca in known]


@pytest.fixture
async def given() -> AsyncIterator[Given]:
    async with FakeApiServer() as server, server.client() as client:
        configure(server)
        yield Given(server, client)


async def test_what_is_given_is_told_and_nothing_is_issued(given: Given) -> None:
    given.give_both(OLD)
    before = {name: dict(given.secret(name).data) for name in ("own", "shared")}
    await given.passes()
    assert given.trusts(OLD)
    assert given.entries()[FOREIGN]["caBundle"] == "Zm9yZWlnbg=="
    assert given.secret("shared").data == before["shared"]
    own = dict(given.secret().data)
    assert own.pop("hook.segment")
    assert own == before["own"], "not even a key of an authority"
    assert given.path() == f"{PLAIN}/{given.segment()}"
    given.server.requests.clear()
    await given.passes(OVERLAP_S)
    assert not [request for request in given.server.requests if request.verb in {"update", "patch", "create"}]


async def test_old_certificates_are_nobodys_business_here(given: Given) -> None:
    """They are renewed by who gave them."""
    given.give_both(OLD)
    await given.passes()
    before = dict(given.secret().data)
    given.now = START.replace(year=START.year + 20)
    await given.passes(OVERLAP_S)
    assert given.secret().data == before


@pytest.mark.parametrize("name", ["own", "shared"])
async def test_before_both_are_given_nothing_is_told(
    given: Given, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    given.give(name, OLD)
    with caplog.at_level(logging.WARNING):
        assert await given.authority.reconcile() == FORMER_S
    assert "certificates are not given yet: tls.crt, tls.key and ca.crt" in caplog.text
    assert "caBundle" not in given.entries()["pods.cardquota.io"]
    given.give_both(OLD)
    await given.passes()
    assert given.trusts(OLD)


async def test_an_authority_that_cannot_be_read_beside_a_good_one_does_no_harm(given: Given) -> None:
    """An API server passes over it, and so does every process of ours. It is told as it stands."""
    given.give_both(OLD)
    ca = OLD.certificate + without_line(NEW.certificate)
    given.give("own", OLD, **{"ca.crt": ca})
    async with background(given.authority.run()):
        await given.server.wait_for(lambda: len(given.server.seen("patch")) == 2)
    assert given.told() == ca
    assert await given.authority.reconcile() > FORMER_S


@pytest.mark.parametrize("name", ["own", "shared"])
async def test_where_no_authority_can_be_read_those_told_before_stay_and_that_counts_as_a_failure(
    given: Given, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every process goes on with the pair that it has."""
    given.give_both(OLD)
    await given.passes()
    given.give(name, NEW, **{"ca.crt": without_line(NEW.certificate)})
    async with background(given.authority.run()):
        await given.server.wait_for(lambda: "certificates could not be reconciled" in caplog.text)
    assert given.trusts(OLD)
    assert given.metrics.registry.get_sample_value("cardquota_certificate_failures_total") == 1.0
    given.give_both(NEW)
    await given.passes()
    assert given.trusts(NEW)


async def test_the_path_goes_with_the_controllers_pair(given: Given) -> None:
    given.give_both(OLD)
    await given.passes()
    first = given.segment()
    given.give("shared", OLD)
    await given.passes(SETTLE_S)
    assert given.segment() == first, "the webhook's has nothing to do with it"
    given.give("own", OLD)
    await given.passes()
    held = held_in(given.secret())
    assert held is not None
    assert (held.current != first, held.former) == (True, first)
    assert given.path() == f"{PLAIN}/{first}", (
        "every replica serves the new one before the API server is told"
    )
    await given.passes(SETTLE_S)
    assert given.path() == f"{PLAIN}/{held.current}"
    await given.passes(OVERLAP_S)
    held = held_in(given.secret())
    assert held is not None
    assert held.former == ""


async def test_a_new_leader_does_not_take_the_pair_for_a_new_one(given: Given) -> None:
    given.give_both(OLD)
    await given.passes()
    before = given.segment()
    given.authority = given.another()
    await given.passes()
    assert given.segment() == before


async def test_a_segment_that_whoever_gives_has_dropped_is_put_back(given: Given) -> None:
    given.give_both(OLD)
    await given.passes()
    before = given.segment()
    stored = given.server.objects[SECRETS.path("n", "own")]
    given.server.put(
        SECRETS, stored | {"data": {k: v for k, v in stored["data"].items() if k != "hook.segment"}}
    )
    await given.passes()
    assert given.segment() == before


async def test_both_authorities_are_trusted_while_the_secrets_differ(given: Given) -> None:
    given.give_both(OLD)
    await given.passes()
    given.give("own", NEW)
    await given.passes()
    assert given.trusts(OLD, NEW)
    for name in ("own", "shared"):
        assert given.secret(name).authorities in given.told(), "each process finds what is in its Secret"
    given.give("shared", NEW)
    await given.passes()
    assert given.trusts(NEW)


async def test_replicas_of_the_first_release_are_still_called(given: Given) -> None:
    given.former = True
    given.give_both(OLD)
    assert await given.authority.reconcile() == FORMER_S
    assert given.path() == PLAIN
    given.former = False
    await given.passes()
    assert given.path() == f"{PLAIN}/{given.segment()}"
