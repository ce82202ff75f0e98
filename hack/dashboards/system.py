"""The dashboard of our own processes."""

from hack.dashboards.shape import Dashboard, Panel

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
