"""Cards under random input and random order of events."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core import names, strictjson
from core.admission import shapes
from core.cards import expression, rules
from core.cards.ask import AskError, CardAsk, card_ask
from core.cards.discovery import discover
from core.cards.inventory import Inventory
from core.cards.quota import MAX_CARDS, CardJsonError, parse_quota, quota_findings, request_findings
from core.objects import Node, group, job, namespace, node, pod, queue
from core.objects.draft import Draft
from core.violations import Findings, message
from tests.builders import a_node, a_pod

PROJECTIONS = (group.project, job.project, namespace.project, node.project, pod.project, queue.project)

cards = st.sampled_from(["A", "B", "NVIDIA-H200", "A/mig-1g.5gb-mixed", "B/mps-80g*1/8", "C/vgpu-1"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
FIELDS = [
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "name",
    "namespace",
    "uid",
    "containers",
    "initContainers",
    "resources",
    "limits",
    "requests",
    "schedulingGates",
    "resourceClaims",
    "allocatable",
    "conditions",
    "type",
    "restartPolicy",
    "ownerReferences",
    "controller",
    "managedFields",
    "fieldsV1",
    "f:status",
    "f:allocated",
    "capability",
    "guarantee",
    "resource",
    "allocated",
    "minMember",
    "minTaskMember",
    "state",
    "dra",
    "overhead",
    "creationTimestamp",
    "nodeSelector",
    "affinity",
]
kubernetes_like = st.recursive(
    scalars | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.integers() | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=30,
)
node_labels = st.dictionaries(
    st.sampled_from(
        [
            "nvidia.com/gpu.product",
            "nvidia.com/gpu.memory",
            "nvidia.com/gpu.replicas",
            "v.com/x.product",
            "v.com/x.memory",
        ]
    ),
    st.sampled_from(["A", "B", "8", "81920", "", "x|y"]),
)
allocatable = st.dictionaries(
    st.sampled_from(
        ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "v.com/x", "v.com/y", "cpu"]
    ),
    st.integers(0, 9).map(str),
)


@given(
    st.sampled_from(PROJECTIONS),
    st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), kubernetes_like),
)
def test_projections_of_garbage_never_raise(project: Any, raw: dict[str, Any]) -> None:
    hash((project(raw).name,))


@given(st.dictionaries(cards, st.integers(0, MAX_CARDS)))
def test_a_proper_quota_is_read_as_written_and_found_in_order(quota: dict[str, int]) -> None:
    text = json.dumps(quota)
    assert parse_quota(text) == quota
    assert quota_findings(text, "p").violations == []


@given(st.text() | documents.map(json.dumps))
def test_admission_refuses_whatever_could_not_be_counted(text: str) -> None:
    findings = quota_findings(text, "p")
    message(findings.violations).encode()
    request_findings(text, "p")
    try:
        counts = parse_quota(text)
    except CardJsonError:
        assert findings.violations
        return
    assert all(0 <= count <= MAX_CARDS for count in counts.values())


@given(documents)
def test_strict_json_reads_what_plain_json_writes(value: Any) -> None:
    text = json.dumps(value)
    assert strictjson.loads(text) == json.loads(text)


@given(st.text(max_size=30))
def test_an_expression_without_errors_splits_into_different_names_without_errors(text: str) -> None:
    if expression.expression_errors(text):
        return
    alternatives = expression.split(text)
    assert alternatives
    assert len(set(alternatives)) == len(alternatives)
    assert not any(expression.name_errors(name) for name in alternatives)
    assert expression.BAR.join(alternatives) == text


def _node(name: str, labels: dict[str, str], amounts: dict[str, str]) -> Node:
    raw = a_node(name).put("metadata", "labels", value=labels).put("status", "allocatable", value=amounts)
    return raw.view()


@given(node_labels, allocatable)
def test_every_discovered_card_has_a_usable_name_and_an_allocatable_resource(
    labels: dict[str, str], amounts: dict[str, str]
) -> None:
    built = _node("n", labels, amounts)
    for card, stock in discover(built, {}).cards.items():
        assert expression.name_errors(card) == []
        by_name = expression.resources_by_name(card)
        assert not by_name or stock.resource in by_name
        assert stock.milli == built.allocatable[stock.resource] > 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.none() | st.tuples(node_labels, allocatable)),
        max_size=12,
    )
)
def test_an_inventory_depends_on_the_last_state_of_each_node_alone(events: list[Any]) -> None:
    inventory, last, known = Inventory({}), dict[str, Node](), set[str]()
    for name, state in events:
        before = {card: inventory.resources_of(card) for card in known}
        if state is None:
            last.pop(name, None)
            changed = inventory.drop(name)
        else:
            last[name] = _node(name, *state)
            changed = inventory.put(last[name])
        known |= set(inventory.cards())
        nothing = {card: expression.resources_by_name(card) for card in known}
        assert changed == {
            card for card in known if inventory.resources_of(card) != before.get(card, nothing[card])
        }
    fresh = Inventory({})
    for built in reversed(last.values()):
        fresh.put(built)
    assert inventory.totals() == fresh.totals()
    assert inventory.conflicts == fresh.conflicts
    assert {card: _facts(inventory, card) for card in inventory.cards()} == {
        card: _facts(fresh, card) for card in fresh.cards()
    }


def _facts(inventory: Inventory, card: str) -> tuple[Any, ...]:
    holders = inventory.nodes_with(card)
    return inventory.resources_of(card), holders, [inventory.on_node(name)[card] for name in holders]


@given(
    st.lists(cards, min_size=1, max_size=3, unique=True),
    st.sampled_from(["gated", "lifted", "bound"]),
    st.none() | cards,
    st.dictionaries(
        st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpu.shared", "rdma/hca"]), st.integers(0, 9)
    ),
    node_labels,
    allocatable,
)
def test_a_pod_is_booked_under_its_expression_or_one_of_its_cards(
    names_: list[str],
    stage: str,
    record: str | None,
    limits: dict[str, int],
    labels: dict[str, str],
    amounts: dict[str, str],
) -> None:
    inventory = Inventory({})
    inventory.put(_node("n", labels, amounts))
    built = a_pod().card("|".join(names_)).container(limits=limits)
    built = built.assigned({record: 2}) if record else built
    built = {"gated": built.gated(), "lifted": built, "bound": built.bound_to("n")}[stage]
    asked = card_ask(built.view(), inventory.resources_of, inventory.on_node("n"))
    assert isinstance(asked, CardAsk | AskError)
    if isinstance(asked, CardAsk):
        assert asked.card in (*names_, "|".join(names_))
        assert asked.milli >= 0
        assert asked.milli % 1000 == 0
        assert stage != "bound" or asked.card in names_


@given(
    st.dictionaries(st.sampled_from(FIELDS), kubernetes_like),
    st.dictionaries(st.sampled_from(FIELDS), kubernetes_like),
    documents,
)
def test_rules_never_raise_on_garbage(metadata: dict[str, Any], spec: dict[str, Any], card: Any) -> None:
    metadata = {**metadata, "annotations": {names.CARD_NAME_ANNOTATION: card}}
    draft = Draft.of({"metadata": metadata, "spec": spec})
    if not draft.typed:
        assert shapes.pod({"metadata": metadata, "spec": spec})
        return
    for complete in (False, True):
        found = Findings()
        rules.judge(draft, inventory=Inventory({}), complete=complete, policy="warn", found=found)
        message(found.violations).encode()
