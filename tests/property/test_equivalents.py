"""Random pods of cards and of claims that are the same devices: no quota of either name is ever passed, and nothing is counted twice."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from core.display.figures import figures_of
from core.objects import Pod
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.audit import audit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.pods import PodBuilder

EQUIVALENTS = {"A": ["a1.dev", "a2.dev"], "B": ["b.dev"]}
CLASSES = {"a1.dev": "A", "a2.dev": "A", "b.dev": "B"}
SHARED = {"one": ("a1.dev", 1), "two": ("b.dev", 2)}
"""Claims that pods name, which any number may share."""

Spec = tuple[str, tuple[str, ...], bool]
"""A card expression or none, claims by name or by a template of a class, and whether it is a member of the gang."""

references = st.lists(st.sampled_from([*SHARED, *CLASSES]), max_size=2).map(tuple)
specs = st.tuples(st.sampled_from(["", "A", "B", "A|B", "B|A"]), references, st.booleans()).filter(
    lambda spec: bool(spec[0] or spec[1])
)
quotas = st.fixed_dictionaries({"A": st.integers(0, 4), "B": st.integers(0, 4)})
limits = st.dictionaries(st.sampled_from(sorted(CLASSES)), st.integers(0, 4))


def a_ledger(settings: Settings, quota: dict[str, int], classes: dict[str, int]) -> Ledger:
    ledger = Ledger(settings)
    ledger.put_node(a_node("a").card("A", 9).view())
    ledger.put_node(a_node("b").card("B", 9).view())
    devices = {"capability": {name: {"count": count} for name, count in classes.items()}}
    ledger.put_queue(a_queue("q").cards(quota).devices(devices).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(2).view())
    for name, (device_class, count) in SHARED.items():
        ledger.devices.put_claim(a_claim(name).exactly("r", device_class, count=count).view())
    for name in CLASSES:
        ledger.devices.put_template(a_template(name).exactly("r", name).view())
    return ledger


def pod_of(number: int, spec: Spec) -> PodBuilder:
    cards, claims, member = spec
    pod = a_pod(f"p{number}").in_queue("q").gated().created(f"2024-01-01T00:00:{number:02}Z")
    pod = pod.gpu(1).card(cards) if cards else pod
    pod = pod.in_group("g") if member else pod
    for entry, name in enumerate(claims):
        pod = pod.claim(f"e{entry}", **({"name": name} if name in SHARED else {"template": name}))
    return pod


def decided(ledger: Ledger, pods: list[Pod]) -> dict[str, dict[str, int] | None]:
    """What each pod is lifted with, by name; None for one that is held."""
    for pod in pods:
        ledger.put_pod(pod)
    found: dict[str, dict[str, int] | None] = {}
    for _ in range(3):
        for one in Planner(ledger).decide("q"):
            if isinstance(one, Lift):
                found[one.pod.name] = dict(one.assigned)
                ledger.put_pod(one.lifted)
            else:
                found.setdefault(one.pod.name, None)
    return found


def taken(specs: list[Spec], lifted: dict[str, dict[str, int] | None]) -> tuple[Counter[str], Counter[str]]:
    """What those who were lifted have of each card and of each class, counted by hand; a shared claim once."""
    cards, classes = Counter[str](), Counter[str]()
    shared: set[str] = set()
    for number, (_, claims, _) in enumerate(specs):
        assigned = lifted.get(f"p{number}")
        if assigned is None:
            continue
        for card, count in assigned.items():
            cards[card] += count
            classes.update(dict.fromkeys(EQUIVALENTS[card], count))
        for name in claims:
            device_class, count = SHARED.get(name, (name, 1))
            if name not in shared:
                cards[CLASSES[device_class]] += count
                classes[device_class] += count
            if name in SHARED:
                shared.add(name)
    return cards, classes


@given(st.lists(specs, max_size=7), quotas, limits)
def test_no_quota_of_any_name_is_passed_and_the_figures_are_what_is_taken(
    wanted: list[Spec], quota: dict[str, int], classes: dict[str, int]
) -> None:
    settings = Settings.model_validate({"cards": {"equivalents": EQUIVALENTS}})
    ledger = a_ledger(settings, quota, classes)
    pods = [pod_of(number, spec).view() for number, spec in enumerate(wanted)]
    lifted = decided(ledger, pods)
    cards, devices = taken(wanted, lifted)
    assert all(count <= quota[card] for card, count in cards.items())
    assert all(count <= classes.get(name, count) for name, count in devices.items())
    shown = {key: milli // 1000 for key, milli in figures_of(ledger, "q").reserved.items()}
    assert shown == {**+cards, **{f"deviceclass/{name}": count for name, count in (+devices).items()}}
    assert finish(audit(ledger, {entry.pod.key: entry.pod for entry in ledger.entries()})) == []
    for pod in pods:
        ledger.drop_pod(pod.uid)
    assert figures_of(ledger, "q").reserved == {}


@given(st.lists(specs, max_size=7), quotas, limits)
def test_a_setting_about_other_cards_changes_no_decision(
    wanted: list[Spec], quota: dict[str, int], classes: dict[str, int]
) -> None:
    pods = [pod_of(number, spec).view() for number, spec in enumerate(wanted)]
    other = Settings.model_validate({"cards": {"equivalents": {"C": ["c.dev"]}}})
    plain, set_apart = a_ledger(Settings(), quota, classes), a_ledger(other, quota, classes)
    assert decided(plain, pods) == decided(set_apart, pods)
    assert figures_of(plain, "q") == figures_of(set_apart, "q")
