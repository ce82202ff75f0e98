"""The dashboard of the cluster: its cards, its nodes, and what schedulers were told of them."""

from hack.dashboards.shape import MOST, Choice, Dashboard, Panel

_N = 'node=~"$node"'
_BY_NODE = "sum by (node, card)"
_BY_RESOURCE = "sum by (node, resource)"
_CARRIED = f"cardquota_node_cards{{{_N}}}"
_CROSS = f"cardquota_node_cross_quota{{{_N}}}"

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
                    f"topk({MOST}, sum by (queue, card) (rate(cardquota_card_seconds_total[1d])))",
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
                    f"topk({MOST}, sum by (queue, card) (rate(cardquota_card_waiting_seconds_total[1d])))",
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
                    f"topk({MOST}, {_BY_NODE} ({_CARRIED}))",
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
                    f"topk({MOST}, {_BY_NODE} (cardquota_node_cards_used{{{_N}}}) / ({_BY_NODE} ({_CARRIED}) > 0))",
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
                    f"topk({MOST}, max by (node, index) (cardquota_node_mgpu_card_taken{{{_N}}}))",
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
                    f"topk({MOST}, {_BY_RESOURCE} (cardquota_node_cross_used{{{_N}}}) / ({_BY_RESOURCE} ({_CROSS}) > 0))",
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
