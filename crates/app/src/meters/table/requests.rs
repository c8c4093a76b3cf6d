//! What is measured of requests: connections and TLS, limits, idempotency keys, the token endpoint.

use super::{
    Kind::{Counter, Gauge, Histogram},
    Label, Meter,
    Values::{Routes, Statuses},
    label, meter,
};

const REQUEST_LABELS: &[Label] = &[
    label("listener", &["api", "backoffice", "docs", "panel"]),
    Label {
        name: "route",
        values: Routes,
    },
    label(
        "method",
        &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"],
    ),
    Label {
        name: "status",
        values: Statuses,
    },
];

pub(super) const METERS: &[Meter] = &[
    meter(
        "http_requests_total",
        Counter,
        "Requests that were answered.",
        REQUEST_LABELS,
    ),
    meter(
        "http_request_duration_seconds",
        Histogram,
        "From a request's head to its whole response, the sending not included.",
        REQUEST_LABELS,
    ),
    meter(
        "tls_certificate_expiry_time_seconds",
        Gauge,
        "When the certificate that a listener serves expires, in seconds since 1970.",
        &[label("listener", &["api", "backoffice"])],
    ),
    meter(
        "tls_reload_failures_total",
        Counter,
        "Looks at a listener's certificate and key that found files which cannot be served, once a minute while they stay so.",
        &[label("listener", &["api", "backoffice"])],
    ),
    meter(
        "http_untrusted_forwarding_total",
        Counter,
        "Requests of peers outside of server.trusted_proxies that speak for somebody else.",
        &[],
    ),
    meter(
        "rate_limit_decisions_total",
        Counter,
        "Requests that were counted against a limit, by what came of it.",
        &[
            label(
                "limit",
                &[
                    "api",
                    "token_by_address",
                    "token_by_client",
                    "authorize_by_address",
                    "sign_in",
                    "password_hashes",
                ],
            ),
            label("decision", &["admitted", "delayed", "refused"]),
        ],
    ),
    meter(
        "idempotency_claims_total",
        Counter,
        "Requests with an idempotency key, by what became of the key; a run that failed is counted again by its end.",
        &[
            label("listener", &["api", "backoffice"]),
            label(
                "outcome",
                &[
                    "run",
                    "in_progress",
                    "reused",
                    "replayed",
                    "released",
                    "recovered",
                    "unanswered",
                    "lost",
                ],
            ),
        ],
    ),
    meter(
        "idempotency_takeovers_total",
        Counter,
        "Claims on idempotency keys that took over from a claim or an answer that had run out.",
        &[],
    ),
    meter(
        "oauth_grants_total",
        Counter,
        "Calls of the token endpoint, by what was asked for and what came of it: granted, or the error.",
        &[
            label(
                "grant_type",
                &[
                    "client_credentials",
                    "authorization_code",
                    "refresh_token",
                    "other",
                ],
            ),
            label(
                "outcome",
                &[
                    "granted",
                    "invalid_request",
                    "invalid_client",
                    "invalid_grant",
                    "invalid_scope",
                    "unsupported_grant_type",
                    "rate_limited",
                    "server_error",
                ],
            ),
        ],
    ),
];
