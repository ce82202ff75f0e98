"""The dashboard of queues: quota, use, and who waits."""

from hack.dashboards.shape import MOST, Choice, Dashboard, Panel

_Q = 'queue_name=~"$queue"'
_BY_CARD = "sum by (queue_name, card)"
_QUOTA = f"volcano_queue_card_capacity{{{_Q}}}"
_DEVICES = f'cardquota_queue_device_allocated{{{_Q},dimension=""}}'
_REQUEST = f"volcano_queue_card_request{{{_Q}}}"
_WAIT = f"time() - (cardquota_queue_oldest_waiting_timestamp_seconds{{{_Q}}} > 0)"
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
                    f"topk({MOST}, {_BY_CARD} (cardquota_queue_card_used{{{_Q}}}) / ({_BY_CARD} ({_QUOTA}) > 0))",
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
            [(f"topk({MOST}, {_WAIT})", "{{queue_name}}")],
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
                    f"topk({MOST}, sum by (queue_name, device_class) ({_DEVICES}))",
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
                    f"topk({MOST}, sum by (queue_name, card) (cardquota_queue_card_overused{{{_Q}}}) > 0)",
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
