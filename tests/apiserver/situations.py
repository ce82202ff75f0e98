"""What becomes of one pod, by its quota, its choice of cards, its mistakes and the nodes."""

from core import names
from tests.apiserver.cluster import Object, unique
from tests.apiserver.manifests import deployment
from tests.apiserver.scene import Scene, Table

TABLE = Table()
situation = TABLE.situation

# -- a pod and its quota ------------------------------------------------------------------------------------------


@situation("runs")
def quota_and_a_free_card(s: Scene) -> list[Object]:
    card = s.card(8)
    return [s.pod(card, s.queue({card: 2}))]


@situation("waits")
def the_quota_is_in_use(s: Scene) -> list[Object]:
    card = s.card(8)
    q = s.queue({card: 2})
    s.busy(card, q, 2)
    return [s.pod(card, q)]


@situation("waits")
def more_than_the_whole_quota(s: Scene) -> list[Object]:
    card = s.card(8)
    return [s.pod(card, s.queue({card: 2}), 3)]


@situation("waits")
def quota_for_another_card(s: Scene) -> list[Object]:
    card = s.card(8)
    return [s.pod(card, s.queue({s.card(1): 2}))]


@situation("waits")
def no_queue_of_that_name(s: Scene) -> list[Object]:
    return [s.pod(s.card(8), unique("nowhere"))]


@situation("waits")
def a_closed_queue(s: Scene) -> list[Object]:
    card = s.card(8)
    q = s.queue({card: 2})
    s.close(q)
    return [s.pod(card, q)]


@situation("waits")
def a_card_that_no_node_has(s: Scene) -> list[Object]:
    card = unique("NONE")
    return [s.pod(card, s.queue({card: 2}))]


@situation("waits")
def cpu_of_the_queue_is_short(s: Scene) -> list[Object]:
    card = s.card(8)
    made = s.pod(card, s.queue({card: 2}, capability={"cpu": "2"}))
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4"}
    return [made]


@situation("runs")
def the_queue_of_another_namespace_that_admits_all_tests(s: Scene) -> list[Object]:
    card = s.card(8)
    return [s.pod(card, s.queue({card: 1}, annotations={names.NAMESPACES_ANNOTATION: "test-*,can-run-*"}))]


@situation("refused")
def the_queue_of_another_namespace(s: Scene) -> list[Object]:
    card = s.card(8)
    return [s.pod(card, s.queue({card: 1}, annotations={names.NAMESPACES_ANNOTATION: "theirs"}))]


@situation("waits")
def behind_the_first_of_a_fifo_queue(s: Scene) -> list[Object]:
    card = s.card(8)
    q = s.queue({card: 2}, dequeueStrategy="fifo")
    s.waiting(card, q, 3)
    return [s.pod(card, q)]


@situation("runs")
def past_one_that_does_not_fit(s: Scene) -> list[Object]:
    card = s.card(8)
    q = s.queue({card: 2})
    s.waiting(card, q, 3)
    return [s.pod(card, q)]


# -- a choice of cards ----------------------------------------------------------------------------------------------


@situation("runs")
def the_second_of_two_cards(s: Scene) -> list[Object]:
    first, second = s.card(4), s.card(4)
    q = s.queue({first: 1, second: 1})
    s.busy(first, q)
    return [s.pod(f"{first}|{second}", q)]


@situation("waits")
def neither_of_two_cards(s: Scene) -> list[Object]:
    first, second = s.card(4), s.card(4)
    q = s.queue({first: 1, second: 1})
    s.busy(first, q)
    s.busy(second, q)
    return [s.pod(f"{first}|{second}", q)]


@situation("waits")
def quota_for_a_choice_and_no_card_free(s: Scene) -> list[Object]:
    first, second = s.card(1), s.card(1)
    other = s.queue({first: 1, second: 1})
    s.busy(first, other)
    s.busy(second, other)
    return [s.pod(f"{first}|{second}", s.queue({first: 1, second: 1}))]


@situation("runs")
def the_card_of_two_that_is_free(s: Scene) -> list[Object]:
    first, second = s.card(1), s.card(1)
    s.busy(first, s.queue({first: 1}))
    return [s.pod(f"{first}|{second}", s.queue({first: 1, second: 1}))]


# -- refused --------------------------------------------------------------------------------------------------------


@situation("refused")
def a_card_name_with_an_empty_part(s: Scene) -> list[Object]:
    card = s.card(1)
    return [s.pod(f"{card}||x", s.queue({card: 1}))]


@situation("refused")
def a_node_name(s: Scene) -> list[Object]:
    card = s.card(1)
    return [s.pod(card, s.queue({card: 1}), nodeName="somewhere")]


@situation("refused")
def a_known_card_without_its_resource(s: Scene) -> list[Object]:
    card = s.card(1)
    made = s.pod(card, s.queue({card: 1}))
    made["spec"]["containers"][0]["resources"] = {}
    return [made]


@situation("refused")
def a_record_of_the_controller(s: Scene) -> list[Object]:
    card = s.card(1)
    made = s.pod(card, s.queue({card: 1}))
    made["metadata"]["annotations"][names.CHARGED_QUEUE_ANNOTATION] = "q"
    return [made]


@situation("refused")
def a_deployment_for_its_template(s: Scene) -> list[Object]:
    return [deployment(unique(s.prefix), s.pod("A||B", "q"), 1)]


# -- nodes ----------------------------------------------------------------------------------------------------------


@situation("waits")
def the_cards_are_in_the_hands_of_another_queue(s: Scene) -> list[Object]:
    card = s.card(2)
    s.busy(card, s.queue({card: 2}), 2)
    return [s.pod(card, s.queue({card: 2}))]


@situation("waits")
def more_cards_than_a_node_has(s: Scene) -> list[Object]:
    card = s.card(4, 4)
    return [s.pod(card, s.queue({card: 8}), 5)]


@situation("waits")
def cards_enough_but_on_two_nodes(s: Scene) -> list[Object]:
    card = s.card(2, 2)
    q = s.queue({card: 4})
    s.cluster.create(*(spread(s, card, q) for _ in range(2)))
    return [s.pod(card, q, 2)]


def spread(s: Scene, card: str, q: str) -> Object:
    """A pod that runs on a node where no other one of the situation does."""
    made = s.pod(card, q)
    made["metadata"]["labels"] = {"situation": s.prefix}
    term = {
        "labelSelector": {"matchLabels": {"situation": s.prefix}},
        "topologyKey": "kubernetes.io/hostname",
    }
    made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    s.running.append(made["metadata"]["name"])
    return made


@situation("waits")
def a_selector_that_no_node_meets(s: Scene) -> list[Object]:
    card = s.card(2)
    return [s.pod(card, s.queue({card: 2}), nodeSelector={"zone": "mars"})]


@situation("waits")
def a_taint(s: Scene) -> list[Object]:
    card = s.card(2, taints=[{"key": "example.com/gpu", "effect": "NoSchedule"}])
    return [s.pod(card, s.queue({card: 2}))]


@situation("runs")
def a_taint_that_is_tolerated(s: Scene) -> list[Object]:
    card = s.card(2, taints=[{"key": "example.com/gpu", "effect": "NoSchedule"}])
    tolerations = [{"key": "example.com/gpu", "operator": "Exists"}]
    return [s.pod(card, s.queue({card: 2}), tolerations=tolerations)]


@situation("waits")
def a_node_that_takes_no_pods(s: Scene) -> list[Object]:
    card = s.card(2)
    for path in s.nodes:
        s.cluster.api.patch(path, {"spec": {"unschedulable": True}}).expect()
    return [s.pod(card, s.queue({card: 2}))]


@situation("waits")
def more_cpu_than_a_node_has(s: Scene) -> list[Object]:
    card = s.card(2)
    made = s.pod(card, s.queue({card: 2}))
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100"}
    return [made]


@situation("waits")
def a_gate_of_somebody_else(s: Scene) -> list[Object]:
    card = s.card(2)
    return [s.pod(card, s.queue({card: 2}), schedulingGates=[{"name": "example.com/check"}])]
