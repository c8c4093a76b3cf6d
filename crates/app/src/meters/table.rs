//! Every metric of the program: its name, its kind, what it tells, and its labels, each with all the values that it can have.

use metrics::Unit;

use Kind::{Counter, Gauge, Histogram};
use Values::{OneOf, Routes, Statuses, Version};

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// By the conventions of Prometheus: base units, which the name ends with; counters end with `_total`.
    pub name: &'static str,
    /// How its value moves.
    pub kind: Kind,
    /// What it tells, as one sentence.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [Label],
}

/// How a value moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Up alone, from the start of the process.
    Counter,
    /// Up and down.
    Gauge,
    /// Many values, counted by bounds: `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// A label.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// The values that it can have.
    pub values: Values,
}

/// The values that a label can have: never what a client makes up.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these.
    OneOf(&'static [&'static str]),
    /// The template of a route of the listener, such as `/v1/offers/{id}`, or `-` where no route matched.
    Routes,
    /// A status of HTTP.
    Statuses,
    /// A version of the program.
    Version,
}

/// A part of the table.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// Its metrics.
    pub meters: &'static [Meter],
}

const fn label(name: &'static str, values: &'static [&'static str]) -> Label {
    Label {
        name,
        values: OneOf(values),
    }
}

const fn meter(name: &'static str, kind: Kind, help: &'static str, labels: &'static [Label]) -> Meter {
    Meter {
        name,
        kind,
        help,
        labels,
    }
}

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

const HTTP: &[Meter] = &[
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
        "http_connections_cut_total",
        Counter,
        "Connections that were given up because of a request, or a TLS handshake, that was malformed or slow to arrive.",
        &[
            label("listener", &["api", "backoffice", "probes"]),
            label("reason", &["malformed", "slow"]),
        ],
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

const GROUPED: &[&str] = &[
    "gate",
    "offers",
    "orders",
    "applications",
    "rate_limits",
    "client_tokens",
];

const DATABASE: &[Meter] = &[
    meter(
        "database_statement_duration_seconds",
        Histogram,
        "How long the database takes to answer, by what is asked; the waiting for a connection is not included.",
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

const ATTEMPT: &[Label] = &[label("attempt", &["first", "repeated"])];
const ABOUT: &[&str] = &["shipment", "account"];
const CARRIER: &[Label] = &[label(
    "carrier",
    &["inpost", "dhl", "poczta_polska", "dpd", "gls", "ups", "fedex"],
)];

const WEBHOOKS: &[Meter] = &[
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

const WORK: &[Meter] = &[
    meter(
        "mail_queue_mails",
        Gauge,
        "Mails that wait to be sent, due or not; 10000 stands for that many or more, NaN for unknown.",
        &[label("about", ABOUT)],
    ),
    meter(
        "mail_queue_oldest_due_seconds",
        Gauge,
        "For how long the oldest mail that is due has been; NaN for unknown.",
        &[label("about", ABOUT)],
    ),
    meter(
        "mails_total",
        Counter,
        "Sendings of mails, by what they are about and what becomes of them.",
        &[
            label("about", ABOUT),
            label("fate", &["sent", "put_off", "given_up"]),
        ],
    ),
    meter(
        "tracking_queue_parcels",
        Gauge,
        "Parcels about which their carrier is due to be asked; 10000 stands for that many or more, NaN for unknown.",
        CARRIER,
    ),
    meter(
        "tracking_queue_oldest_due_seconds",
        Gauge,
        "For how long the oldest parcel that is due has been; NaN for unknown.",
        CARRIER,
    ),
    meter(
        "parcels_followed_total",
        Counter,
        "Parcels that were due and looked at.",
        &[],
    ),
    meter(
        "worker_failures_total",
        Counter,
        "Batches of work that failed, by worker.",
        &[label(
            "worker",
            &[
                "mails",
                "account_mails",
                "parcels",
                "deliveries",
                "reconciliation",
                "usage",
                "cleaning",
            ],
        )],
    ),
];

const PROCESS: &[Meter] = &[
    meter(
        "trace_spans_total",
        Counter,
        "Spans that were to be handed to the collector of traces, by what came of it.",
        &[label("fate", &["sent", "lost"])],
    ),
    meter(
        "ready",
        Gauge,
        "1 while the process can do its work, as /readyz says; else 0.",
        &[],
    ),
    meter(
        "build_info",
        Gauge,
        "Always 1, with the version of the program.",
        &[Label {
            name: "version",
            values: Version,
        }],
    ),
    meter(
        "process_cpu_seconds_total",
        Counter,
        "CPU time that the process has used.",
        &[],
    ),
    meter(
        "process_resident_memory_bytes",
        Gauge,
        "Memory that the process holds.",
        &[],
    ),
    meter(
        "process_virtual_memory_bytes",
        Gauge,
        "Addresses that the process has reserved.",
        &[],
    ),
    meter(
        "process_virtual_memory_max_bytes",
        Gauge,
        "Addresses that the process may reserve; infinite where nothing limits them.",
        &[],
    ),
    meter("process_open_fds", Gauge, "File descriptors that are open.", &[]),
    meter(
        "process_max_fds",
        Gauge,
        "File descriptors that may be open.",
        &[],
    ),
    meter("process_threads", Gauge, "Threads of the process.", &[]),
    meter(
        "process_start_time_seconds",
        Gauge,
        "When the process started, in seconds since 1970.",
        &[],
    ),
];

/// The whole table.
pub const SECTIONS: [Section; 5] = [
    Section {
        title: "Requests",
        meters: HTTP,
    },
    Section {
        title: "The database",
        meters: DATABASE,
    },
    Section {
        title: "Webhooks",
        meters: WEBHOOKS,
    },
    Section {
        title: "Mails, parcels and other work",
        meters: WORK,
    },
    Section {
        title: "The process",
        meters: PROCESS,
    },
];

/// How the names begin that a library counts by itself.
const OF_THE_LIBRARY: &str = "process_";

/// Every metric.
pub fn meters() -> impl Iterator<Item = &'static Meter> {
    SECTIONS.iter().flat_map(|section| section.meters)
}

impl Meter {
    /// The name of its unit's base, where it has one.
    fn unit(&self) -> Option<Unit> {
        let name = self.name.trim_end_matches("_total");
        if name.ends_with("_seconds") {
            Some(Unit::Seconds)
        } else if name.ends_with("_bytes") {
            Some(Unit::Bytes)
        } else {
            None
        }
    }

    /// Tells the recorder what the metric is.
    pub(super) fn describe(&self) {
        match (self.kind, self.unit()) {
            (Counter, Some(unit)) => metrics::describe_counter!(self.name, unit, self.help),
            (Counter, None) => metrics::describe_counter!(self.name, self.help),
            (Gauge, Some(unit)) => metrics::describe_gauge!(self.name, unit, self.help),
            (Gauge, None) => metrics::describe_gauge!(self.name, self.help),
            (Histogram, Some(unit)) => metrics::describe_histogram!(self.name, unit, self.help),
            (Histogram, None) => metrics::describe_histogram!(self.name, self.help),
        }
    }

    /// Has a counter begin at 0 for all that it may count. Prometheus sees no increase where a series begins with its first event, and
    /// what happens once a month would never be told of.
    pub(super) fn begin(&self) {
        if self.kind == Counter && !self.name.starts_with(OF_THE_LIBRARY) {
            for labels in self.combinations() {
                metrics::counter!(self.name, labels).increment(0);
            }
        }
    }

    /// Every combination of its labels' values; none where one of them has values that are not listed.
    pub(super) fn combinations(&self) -> Vec<Vec<metrics::Label>> {
        self.labels.iter().fold(vec![Vec::new()], |combined, label| {
            let values = match label.values {
                OneOf(values) => values,
                Routes | Statuses | Version => &[],
            };
            let with = |value: &&'static str| metrics::Label::from_static_parts(label.name, value);
            combined
                .iter()
                .flat_map(|before| values.iter().map(move |value| (before, value)))
                .map(|(before, value)| before.iter().cloned().chain([with(value)]).collect())
                .collect()
        })
    }
}

impl Values {
    /// Whether a label may have this value.
    pub fn hold(&self, value: &str) -> bool {
        match self {
            OneOf(values) => values.contains(&value),
            Routes => value == "-" || value.starts_with('/'),
            Statuses => value
                .parse()
                .is_ok_and(|status: u16| (100..=599).contains(&status)),
            Version => value.starts_with(|first: char| first.is_ascii_digit()),
        }
    }
}
