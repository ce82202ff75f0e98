"""What the dashboards show, panel by panel."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: its title, what it says, and its queries, each with the name of its lines."""

    title: str
    description: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    stacked: bool = False
    width: int = 12


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody may choose among: the values of a label of a metric, by default all of them."""

    name: str
    title: str
    metric: str
    label: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of them, with choices that its queries name, as `$queue`."""

    name: str
    title: str
    panels: Sequence[Panel]
    choices: Sequence[Choice] = ()


_N = 'node=~"$node"'
_Q = 'queue_name=~"$queue"'
_BY_CARD = "sum by (queue_name, card)"
_QUOTA = f"volcano_queue_card_capacity{{{_Q}}}"
_DEVICES = f'cardquota_queue_device_allocated{{{_Q},dimension=""}}'
_REQUEST = f"volcano_queue_card_request{{{_Q}}}"
_WAIT = f"time() - (cardquota_queue_oldest_waiting_timestamp_seconds{{{_Q}}} > 0)"
_BY_NODE = "sum by (node, card)"
_BY_RESOURCE = "sum by (node, resource)"
_CARRIED = f"cardquota_node_cards{{{_N}}}"
_CROSS = f"cardquota_node_cross_quota{{{_N}}}"
_MOST = 15
"""Of several hundred queues so many are shown side by side: those that stand out."""
_USED = f"cardquota_queue_card_used{{{_Q}}} or 0 * {_REQUEST}"

QUEUES = Dashboard(
    "queues",
    "cardquota / queues",
    choices=(Choice("queue", "Queue", "volcano_queue_card_request", "queue_name"),),
    panels=(
        Panel(
            "Cards in use by workload",
            "Offline are pods of Volcano Jobs, online all others; with pods that have quota and no node yet.",
            [(f"sum by (kind) (cardquota_queue_card_used{{{_Q}}})", "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Cards in use by card",
            "Pods that have a node.",
            [(f"sum by (card) (volcano_queue_card_allocated{{{_Q}}})", "{{card}}")],
            stacked=True,
        ),
        Panel(
            "Quota and use",
            "What the queues may use, what they use, and what is promised to pods without a node.",
            [
                (f"sum by (card) (volcano_queue_card_capacity{{{_Q}}})", "quota {{card}}"),
                (f"sum by (card) (volcano_queue_card_allocated{{{_Q}}})", "allocated {{card}}"),
                (f"sum by (card) (cardquota_queue_card_reserved{{{_Q}}})", "reserved {{card}}"),
            ],
        ),
        Panel(
            "Fullest queues",
            "The part of its quota of a card that a queue uses now or has promised.",
            [
                (
                    f"topk({_MOST}, {_BY_CARD} (cardquota_queue_card_used{{{_Q}}}) / ({_BY_CARD} ({_QUOTA}) > 0))",
                    "{{queue_name}} {{card}}",
                )
            ],
            unit="percentunit",
            kind="bargauge",
        ),
        Panel(
            "Cards waited for",
            "What the pods at the gate ask for.",
            [
                (
                    f"sum by (card) ({_REQUEST}) - sum by (card) ({_USED})",
                    "{{card}}",
                )
            ],
            stacked=True,
        ),
        Panel(
            "Queues that wait longest",
            "How long the pod has waited by now that waits longest at the gate of the queue.",
            [(f"topk({_MOST}, {_WAIT})", "{{queue_name}}")],
            unit="s",
            kind="bargauge",
        ),
        Panel(
            "Longest wait",
            "How long the pod has waited that waits longest of all.",
            [(f"max({_WAIT})", "longest")],
            unit="s",
        ),
        Panel(
            "Lifts for the queues",
            "Pods that were let in, a minute, by what became of the write.",
            [(f"60 * sum by (outcome) (rate(cardquota_queue_lifts_total{{{_Q}}}[5m]))", "{{outcome}}")],
            unit="opm",
        ),
        Panel(
            "Why pods of the queues are left waiting",
            "Decisions a minute, by reason; a pod counts each time it is looked at.",
            [(f"60 * sum by (reason) (rate(cardquota_queue_holds_total{{{_Q}}}[5m]))", "{{reason}}")],
            unit="opm",
            stacked=True,
        ),
        Panel(
            "Devices in use",
            "Devices of claims now, by DeviceClass; a queue shows those below it too.",
            [
                (
                    f"topk({_MOST}, sum by (queue_name, device_class) ({_DEVICES}))",
                    "{{queue_name}} {{device_class}}",
                )
            ],
            kind="bargauge",
        ),
        Panel(
            "Beyond the quota",
            "Cards in use above the quota now: it was lowered, or pods were bound past the controller.",
            [
                (
                    f"topk({_MOST}, sum by (queue_name, card) (cardquota_queue_card_overused{{{_Q}}}) > 0)",
                    "{{queue_name}} {{card}}",
                )
            ],
            kind="bargauge",
        ),
        Panel(
            "Pods that hold quota without a node",
            "For longer than reservation.warnAfter; and gangs that are in by halves.",
            [
                (f"sum(cardquota_reserved_too_long{{{_Q}}})", "late pods"),
                (f"sum(cardquota_gangs_unfinished{{{_Q}}})", "gangs cut short"),
            ],
        ),
    ),
)

CLUSTER = Dashboard(
    "cluster",
    "cardquota / cluster",
    choices=(Choice("node", "Node", "cardquota_node_cards", "node"),),
    panels=(
        Panel(
            "Cards",
            "What the nodes show, and what is in use of it.",
            [
                ("sum by (card) (cardquota_cards)", "on nodes {{card}}"),
                ("sum by (card) (cardquota_queue_card_used)", "in use {{card}}"),
            ],
        ),
        Panel(
            "Cards in use by workload",
            "Offline are pods of Volcano Jobs, online all others.",
            [("sum by (kind) (cardquota_queue_card_used)", "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Quota sold of the cards that there are",
            "Above 1 more is promised than there is; of queues below each other the sum counts twice.",
            [
                (
                    "sum by (card) (volcano_queue_card_capacity) / (sum by (card) (cardquota_cards) > 0)",
                    "{{card}}",
                )
            ],
            unit="percentunit",
        ),
        Panel(
            "Lifts",
            "Pods that were let in, a minute, by what became of the write.",
            [("60 * sum by (outcome) (rate(cardquota_lifts_total[5m]))", "{{outcome}}")],
            unit="opm",
        ),
        Panel(
            "Decisions to leave a pod waiting",
            "A minute, by reason; a pod counts each time it is looked at.",
            [("60 * sum by (reason) (rate(cardquota_holds_total[5m]))", "{{reason}}")],
            unit="opm",
            stacked=True,
        ),
        Panel(
            "Binds",
            "Answers of the binding hook, a minute.",
            [("60 * sum by (verdict, reason) (rate(cardquota_binds_total[5m]))", "{{verdict}} {{reason}}")],
            unit="opm",
        ),
        Panel(
            "Cards on average in the last day",
            "What each queue has used, by its card-seconds.",
            [
                (
                    f"topk({_MOST}, sum by (queue, card) (rate(cardquota_card_seconds_total[1d])))",
                    "{{queue}} {{card}}",
                )
            ],
            kind="bargauge",
        ),
        Panel(
            "Cards waited for on average in the last day",
            "By whom; in cards as well.",
            [
                (
                    f"topk({_MOST}, sum by (queue, card) (rate(cardquota_card_waiting_seconds_total[1d])))",
                    "{{queue}} {{card}}",
                )
            ],
            kind="bargauge",
        ),
        Panel(
            "Cards used past the quotas",
            "Of pods that use cards without naming one: no queue is charged with them.",
            [("sum by (card) (cardquota_cards_unaccounted)", "unaccounted {{card}}")],
        ),
        Panel(
            "mGPU cards by how full they are",
            "In hundredths, of the card's core or memory, whichever is taken more.",
            [("sum by (fill) (cardquota_mgpu_cards)", "{{fill}}")],
            stacked=True,
        ),
        Panel(
            "Cards by node",
            "Those that the chosen nodes carry now, by card; of the nodes with most.",
            [
                (
                    f"topk({_MOST}, {_BY_NODE} ({_CARRIED}))",
                    "{{node}} {{card}}",
                )
            ],
            kind="bargauge",
        ),
        Panel(
            "Fullest nodes",
            "The part of its cards of a kind that pods use of a node now, with the card's name or without.",
            [
                (
                    f"topk({_MOST}, {_BY_NODE} (cardquota_node_cards_used{{{_N}}}) / ({_BY_NODE} ({_CARRIED}) > 0))",
                    "{{node}} {{card}}",
                )
            ],
            unit="percentunit",
            kind="bargauge",
        ),
        Panel(
            "Fullest mGPU cards",
            "The part of a card's core or memory, whichever is more, that is taken of it now.",
            [
                (
                    f"topk({_MOST}, max by (node, index) (cardquota_node_mgpu_card_taken{{{_N}}}))",
                    "{{node}} {{index}}",
                )
            ],
            unit="percentunit",
            kind="bargauge",
        ),
        Panel(
            "CrossQuota by node",
            "The part of what pods without GPU may use of a node with GPUs that they use now.",
            [
                (
                    f"topk({_MOST}, {_BY_RESOURCE} (cardquota_node_cross_used{{{_N}}}) / ({_BY_RESOURCE} ({_CROSS}) > 0))",
                    "{{node}} {{resource}}",
                )
            ],
            unit="percentunit",
            kind="bargauge",
        ),
        Panel(
            "mGPU records that are not in order",
            "By what is wrong with them.",
            [("sum by (kind) (cardquota_mgpu_irregularities)", "{{kind}}")],
        ),
        Panel(
            "Nodes that a scheduler was told not to use",
            "By reason, a minute; a node counts each time it is asked about.",
            [("60 * sum by (reason) (rate(cardquota_extender_refusals_total[5m]))", "{{reason}}")],
            unit="opm",
        ),
    ),
)

SYSTEM = Dashboard(
    "system",
    "cardquota / system",
    panels=(
        Panel("Leader", "Which replica leads.", [("cardquota_leader", "{{pod}}")]),
        Panel(
            "Time until certificates expire",
            "Of what each replica serves.",
            [
                (
                    "(cardquota_serving_certificate_not_after_timestamp_seconds > 0) - time()",
                    "{{pod}}",
                )
            ],
            unit="s",
        ),
        Panel(
            "Admission, 99 of 100",
            "From the complete body of a request to its answer.",
            [
                (
                    "histogram_quantile(0.99, sum by (le, path) (rate(cardquota_admission_duration_seconds_bucket[5m])))",
                    "{{path}}",
                )
            ],
            unit="s",
        ),
        Panel(
            "Admission by verdict",
            "Requests a second.",
            [("sum by (verdict) (rate(cardquota_admission_requests_total[5m]))", "{{verdict}}")],
            unit="ops",
        ),
        Panel(
            "Binding hook, 99 of 100",
            "Of pods about which there was something to decide.",
            [
                (
                    "histogram_quantile(0.99, sum by (le) (rate(cardquota_bind_duration_seconds_bucket[5m])))",
                    "binds",
                )
            ],
            unit="s",
        ),
        Panel(
            "Quota pass, 99 of 100",
            "Over all queues that had changed.",
            [
                (
                    "histogram_quantile(0.99, sum by (le) (rate(cardquota_quota_pass_duration_seconds_bucket[5m])))",
                    "passes",
                )
            ],
            unit="s",
        ),
        Panel(
            "Stalls",
            "Pauses of the event loop of more than 50 ms, a minute.",
            [("60 * sum by (pod) (rate(cardquota_loop_stall_seconds_count[5m]))", "{{pod}}")],
            unit="opm",
        ),
        Panel(
            "Requests to the API server",
            "A second, by answer.",
            [("sum by (code) (rate(cardquota_api_requests_total[5m]))", "{{code}}")],
            unit="ops",
        ),
    ),
)

DASHBOARDS = (QUEUES, CLUSTER, SYSTEM)
