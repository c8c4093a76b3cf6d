//! What is measured of webhooks: the queue, attempts and how they end, the subscriptions that are taken in hand.

use super::{
    Kind::{Counter, Gauge, Histogram},
    Label, Meter, label, meter,
};

const ATTEMPT: &[Label] = &[label("attempt", &["first", "repeated"])];

pub(super) const METERS: &[Meter] = &[
    meter(
        "webhook_queue_deliveries",
        Gauge,
        "Deliveries that wait for an attempt, due or not; 10000 stands for that many or more, NaN for unknown.",
        ATTEMPT,
    ),
    meter(
        "webhook_queue_oldest_due_seconds",
        Gauge,
        "For how long the oldest delivery that is due has been; NaN for unknown.",
        ATTEMPT,
    ),
    meter(
        "webhook_first_attempt_delay_seconds",
        Histogram,
        "From an event to the begin of its delivery's first attempt, by the database's clock there and this machine's here.",
        &[],
    ),
    meter(
        "webhook_attempts_total",
        Counter,
        "Attempts that ended, by the class of the status, or by why there was no answer.",
        &[label(
            "outcome",
            &[
                "1xx",
                "2xx",
                "3xx",
                "4xx",
                "5xx",
                "other",
                "dns",
                "address_refused",
                "connect",
                "refused",
                "timed_out",
                "tls",
                "protocol",
                "closed",
                "worker_lost",
            ],
        )],
    ),
    meter(
        "webhook_attempt_duration_seconds",
        Histogram,
        "From an attempt's begin to the head of its answer, or to its failure.",
        &[],
    ),
    meter(
        "webhook_attempts_postponed_total",
        Counter,
        "Attempts that did not begin, for as many as a host is given were under way there.",
        &[],
    ),
    meter(
        "webhook_deliveries_total",
        Counter,
        "Attempts that ended, by what becomes of the delivery.",
        &[label("fate", &["delivered", "put_off", "given_up"])],
    ),
    meter(
        "webhook_attempts_in_flight",
        Gauge,
        "Attempts that are under way.",
        &[],
    ),
    meter(
        "webhook_lanes_claimed_total",
        Counter,
        "Subscriptions that were taken in hand because deliveries were due.",
        &[],
    ),
    meter(
        "webhook_lanes_unreadable_total",
        Counter,
        "Subscriptions that were left out for once, for what they are signed with, or their address, cannot be read.",
        &[],
    ),
    meter(
        "webhook_kept_connections",
        Gauge,
        "Unused connections to receivers that are kept for further deliveries.",
        &[],
    ),
];
