//! What is measured of the database: its answers, what is asked together, and the pool.

use super::{
    Kind::{Gauge, Histogram},
    Meter, label, meter,
};

const GROUPED: &[&str] = &[
    "gate",
    "offers",
    "orders",
    "applications",
    "rate_limits",
    "client_tokens",
];

pub(super) const METERS: &[Meter] = &[
    meter(
        "database_statement_duration_seconds",
        Histogram,
        "How long the database takes to answer, by what is asked; the waiting for a connection is not included. A lock that goes along with its transaction's begin counts as `transaction`.",
        &[label(
            "statement",
            &[
                "gate",
                "offers",
                "orders",
                "offer_pages",
                "order_pages",
                "begin",
                "transaction",
                "commit",
                "claims",
                "rate_limits",
                "applications",
                "client_tokens",
                "grants",
                "subscriptions",
                "lanes",
                "mails",
                "account_mails",
                "parcels",
                "changes",
                "order_directory",
                "sellers",
                "operator_tokens",
                "panel",
                "audit",
                "usage",
                "queues",
                "schema",
                "marks",
                "sealed_values",
            ],
        )],
    ),
    meter(
        "database_group_size",
        Histogram,
        "How many questions went together as one statement.",
        &[label("statement", GROUPED)],
    ),
    meter(
        "database_pool_wait_seconds",
        Histogram,
        "How long a connection of the pool was waited for, the opening of a new one included.",
        &[],
    ),
    meter(
        "database_pool_connections",
        Gauge,
        "Connections of the pool.",
        &[label("state", &["in_use", "idle"])],
    ),
    meter(
        "database_pool_connections_max",
        Gauge,
        "The most connections that the pool may have: database.pool_size.",
        &[],
    ),
    meter(
        "database_pool_waiting",
        Gauge,
        "Callers that wait for a connection of the pool.",
        &[],
    ),
];
