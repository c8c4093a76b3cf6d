//! The table of metrics. Descriptions, the counters' first values and the page `docs/operations/metrics.md`
//! are made of it.

use std::fmt::{self, Display, Write as _};

#[derive(Debug)]
pub struct Metric {
    /// The section of the page.
    section: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [Label],
    pub help: &'static str,
}

kernel::words! {
    pub enum Kind {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
    }
}

#[derive(Debug)]
pub struct Label {
    pub name: &'static str,
    /// All possible values; `None` if there are too many to list, such as routes.
    pub values: Option<&'static [&'static str]>,
    /// What the values are, if they are not listed.
    meaning: &'static str,
}

const fn any(name: &'static str, meaning: &'static str) -> Label {
    Label {
        name,
        values: None,
        meaning,
    }
}

/// Declares labels by name and possible values.
macro_rules! labels {
    ($($label:ident $name:literal: $($value:literal)|+;)+) => {
        $(const $label: Label = Label {
            name: $name,
            values: Some(&[$($value),+]),
            meaning: "",
        };)+
    };
}

labels! {
    LISTENER "listener": "api" | "backoffice" | "docs" | "panel" | "probes";
    METHOD "method": "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "other";
    MAIN_LISTENER "listener": "api" | "backoffice";
    LIMIT "limit": "api" | "events" | "token_by_address" | "token_by_client" | "authorize_by_address" | "sign_in" | "panel_pages" | "password_hashes";
    DECISION "decision": "admitted" | "delayed" | "refused";
    CLAIM_OUTCOME "outcome": "run" | "in_progress" | "reused" | "replayed" | "released" | "recovered" | "unanswered" | "lost";
    GRANT_TYPE "grant_type": "client_credentials" | "authorization_code" | "refresh_token" | "other";
    GRANT_OUTCOME "outcome": "granted" | "invalid_request" | "invalid_client" | "invalid_grant" | "invalid_scope" | "unsupported_grant_type"
        | "rate_limited" | "server_error";
    STATEMENT "statement": "gate" | "offers" | "orders" | "offer_pages" | "order_pages" | "offers_to_change" | "offer_changes" | "begin"
        | "transaction" | "commit" | "claims" | "rate_limits" | "applications" | "sessions" | "client_tokens" | "exchanges" | "holders" | "grants" | "subscriptions"
        | "webhook_queues" | "mails" | "account_mails" | "parcels" | "changes" | "journal" | "order_directory" | "sellers" | "operator_tokens" | "panel"
        | "audit" | "usage" | "queues" | "outcomes" | "schema" | "statistics" | "marks" | "sealed_values";
    BATCHED_STATEMENT "statement": "gate" | "offers" | "orders" | "offer_pages" | "order_pages" | "offers_to_change" | "offer_changes"
        | "applications" | "sessions" | "operator_tokens" | "rate_limits" | "client_tokens" | "exchanges" | "holders";
    STATE "state": "in_use" | "idle";
    ATTEMPT "attempt": "first" | "repeated";
    ATTEMPT_OUTCOME "outcome": "1xx" | "2xx" | "3xx" | "4xx" | "5xx" | "other" | "dns" | "address_refused" | "connect" | "refused"
        | "timed_out" | "tls" | "protocol" | "closed" | "worker_lost";
    DELIVERY_OUTCOME "outcome": "delivered" | "retry" | "given_up";
    ABOUT "about": "shipment" | "account";
    MAIL_OUTCOME "outcome": "sent" | "retry" | "given_up";
    WORKER "worker": "mails" | "account_mails" | "parcels" | "deliveries" | "reconciliation" | "usage" | "cleaning" | "follow_ups"
        | "statistics";
    CARRIER "carrier": "inpost" | "dhl" | "poczta_polska" | "dpd" | "gls" | "ups" | "fedex";
    SPAN_OUTCOME "outcome": "sent" | "lost";
    ROLE "role": "serve" | "worker" | "both";
}

const ROUTE: Label = any("route", "its template, such as `/v1/offers/{id}`, or `-`");
const STATUS: Label = any("status", "the status");
const REFUSED: Label = any(
    "refused",
    "`row` where others kept a seller's request from a row, else absent",
);
const APPLICATION: Label = any(
    "client_id",
    "the application's, of the first 200 of a process that were refused 20 times in a quarter of an hour; `unnamed`: the rest of these, until a restart; or `other`",
);
const ID: Label = any("id", "the cluster's system identifier and the database's oid");
const TIMELINE: Label = any(
    "timeline",
    "the cluster's timeline, by which a promoted copy differs",
);
const VERSION: Label = any("version", "the program's version");

/// Declares the metrics by section: kind, name, labels, description.
macro_rules! metrics {
    ($($section:literal { $($kind:ident $name:literal [$($label:ident),*] $help:literal;)+ })+) => {
        static TABLE: &[Metric] = &[$($(Metric {
            section: $section,
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        },)+)+];
    };
}

metrics! {
    "Requests" {
        Counter "http_requests_total" [LISTENER, ROUTE, METHOD, STATUS, REFUSED] "Answered requests.";
        Counter "application_refusals_total" [APPLICATION, STATUS]
            "Requests of a known application that were answered with 401, 403 or 429.";
        Counter "answers_given_up_total" []
            "Lists and other large answers that were not sent whole: more than 64 MiB of them waited, and this seller, application or address had most.";
        Histogram "http_request_duration_seconds" [LISTENER, ROUTE, METHOD, STATUS]
            "Time from a request's head to its whole response, without sending it or the wait for its body; of reads also without their wait for other requests of the same seller or application.";
        Gauge "tls_certificate_expiry_time_seconds" [MAIN_LISTENER]
            "When the certificate that a listener serves expires, in seconds since 1970.";
        Counter "tls_plaintext_connections_total" [MAIN_LISTENER]
            "Connections to a TLS listener whose client spoke no TLS, such as plain HTTP. The log has the first one.";
        Counter "tls_reload_failures_total" [MAIN_LISTENER]
            "Reloads of a listener's certificate and key that failed, once a minute while they fail.";
        Counter "http_untrusted_forwarding_total" [] "Requests with forwarding headers from peers outside of server.trusted_proxies.";
        Counter "rate_limit_decisions_total" [LIMIT, DECISION] "Requests that were counted against a limit, by decision.";
        Counter "idempotency_claims_total" [MAIN_LISTENER, CLAIM_OUTCOME]
            "Requests with an idempotency key, by the key's outcome; a run that failed is counted again by its end.";
        Counter "idempotency_takeovers_total" [] "Claims on idempotency keys that replaced an expired claim or response.";
        Gauge "journal_readers_waiting" []
            "Requests that wait at the journal for an event, 2000 at most.";
        Counter "oauth_grants_total" [GRANT_TYPE, GRANT_OUTCOME]
            "Calls of the token endpoint, by grant type and result: granted, or the error.";
    }
    "The database" {
        Histogram "database_statement_duration_seconds" [STATEMENT]
            "The database's time for a statement, without the wait for a connection. A lock that is sent with its transaction's begin counts as `transaction`.";
        Histogram "database_batch_size" [BATCHED_STATEMENT] "Requests in one batch.";
        Histogram "database_pool_wait_seconds" [] "Wait for a connection of the pool, including the opening of a new one.";
        Gauge "database_pool_connections" [STATE]
            "Connections of the pool for requests; the workers' is counted in `database_pool_wait_seconds` alone.";
        Gauge "database_oldest_snapshot_seconds" []
            "Age of the oldest transaction that holds a snapshot in the server or has written; NaN for unknown, also if the program's role may not see others' (`pg_read_all_stats`) and its own are young.";
        Gauge "database_info" [ID, TIMELINE] "1 for the database on which the process works; 0 while it is not reached.";
        Gauge "database_clock_difference_seconds" []
            "The database's clock minus this machine's, beyond the time of the look; NaN for unknown.";
        Gauge "database_workers_unreachable" [] "Workers of a Citus cluster that the coordinator does not reach; NaN for unknown.";
        Gauge "database_transactions_in_doubt" []
            "Prepared transactions of a Citus cluster's workers that have not ended for half a minute; NaN for unknown.";
        Gauge "database_pool_connections_max" [] "The largest size of the pool: database.pool_size.";
        Gauge "database_pool_waiting" [] "Callers that wait for a connection of the pool.";
    }
    "Webhooks" {
        Gauge "webhook_queue_deliveries" [ATTEMPT]
            "Deliveries that wait for an attempt, due or not; 10000 stands for that many or more, NaN for unknown.";
        Gauge "webhook_queue_oldest_due_seconds" [ATTEMPT]
            "Age of the oldest due delivery, but for subscriptions whose receiver fails or is being served; NaN for unknown.";
        Histogram "webhook_first_attempt_delay_seconds" []
            "Time from an event, or from when it is delivered anew (the database's clock), to the start of the first attempt (this machine's clock).";
        Counter "webhook_attempts_total" [ATTEMPT_OUTCOME] "Finished attempts, by the class of the status, or by the cause of the failure.";
        Histogram "webhook_attempt_duration_seconds" [] "Time from an attempt's start to the head of the response, or to the failure.";
        Counter "webhook_attempts_postponed_total" [] "Attempts that waited because a host's share was in use.";
        Counter "webhook_delivery_outcomes_total" [DELIVERY_OUTCOME] "Finished attempts, by the outcome for the delivery.";
        Gauge "webhook_attempts_in_flight" [] "Attempts in flight.";
        Gauge "webhook_attempts_max" [] "How many may be in flight: `webhooks.concurrency`.";
        Counter "webhook_queues_claimed_total" [] "Queues of subscriptions that were claimed because deliveries were due.";
        Counter "webhook_queues_unreadable_total" [] "Subscriptions that were skipped because their secret or address cannot be opened.";
        Gauge "webhook_idle_connections" [] "Idle connections to receivers.";
    }
    "Mails, parcels and other work" {
        Gauge "mail_queue_mails" [ABOUT] "Mails that wait to be sent, due or not; 10000 stands for that many or more, NaN for unknown.";
        Gauge "mail_queue_oldest_due_seconds" [ABOUT] "Age of the oldest due mail; NaN for unknown.";
        Counter "mail_outcomes_total" [ABOUT, MAIL_OUTCOME] "Attempts to send a mail, by subject and outcome.";
        Gauge "tracking_queue_parcels" [CARRIER] "Parcels with a due look-up; 10000 stands for that many or more, NaN for unknown.";
        Gauge "tracking_queue_oldest_due_seconds" [CARRIER] "Age of the oldest due look-up; NaN for unknown.";
        Counter "parcel_lookups_total" [] "Due look-ups of parcels that were done.";
        Counter "worker_failures_total" [WORKER] "Failed batches, by worker; of an outage those after its first three seconds, and only while the process is ready.";
    }
    "The process" {
        Counter "trace_spans_exported_total" [SPAN_OUTCOME] "Spans for the collector, by outcome.";
        Counter "log_lines_lost_total" []
            "Lines of the log that could not be written, or waited in vain for a reader. The first 4 KiB after a failure wait in a buffer, uncounted.";
        Gauge "sealing_keys_missing" []
            "Keys of stored values that keys.sealing lacked at the start, or had another one for, in a sample of 500 rows of each table; NaN for unknown.";
        Gauge "ready" [] "1 while /readyz is 200, else 0.";
        Gauge "process_role" [ROLE]
            "Always 1, with what the process does: it answers requests, works on the queues, or both, as the sandbox does.";
        Gauge "build_info" [VERSION] "Always 1, with the version of the program.";
        Counter "process_cpu_seconds_total" [] "CPU time of the process.";
        Gauge "process_resident_memory_bytes" [] "Resident memory.";
        Gauge "process_virtual_memory_bytes" [] "Virtual memory.";
        Gauge "process_virtual_memory_max_bytes" [] "Limit of the virtual memory; infinite without a limit.";
        Gauge "process_open_fds" [] "Open file descriptors.";
        Gauge "process_max_fds" [] "Limit of open file descriptors.";
        Gauge "process_threads" [] "Threads of the process.";
        Gauge "process_start_time_seconds" [] "When the process started, in seconds since 1970.";
    }
}

/// Every metric, in the order of the page.
pub fn table() -> &'static [Metric] {
    TABLE
}

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.values {
            Some(values) => write!(f, "`{}`: `{}`", self.name, values.join("`, `")),
            None => write!(f, "`{}`: {}", self.name, self.meaning),
        }
    }
}

const HEADER: &str = "| metric | kind | labels | meaning |\n|---|---|---|---|";

/// The page, in Markdown.
pub fn page() -> Result<String, fmt::Error> {
    let mut page = include_str!("page.md").to_owned();
    for section in TABLE.chunk_by(|one, next| one.section == next.section) {
        let title = section.first().map_or("", |metric| metric.section);
        writeln!(page, "\n## {title}\n\n{HEADER}")?;
        for metric in section {
            let labels = match metric.labels {
                [] => "–".to_owned(),
                labels => labels.iter().map(Label::to_string).collect::<Vec<_>>().join("; "),
            };
            let (name, kind, help) = (metric.name, metric.kind.as_str(), metric.help);
            writeln!(page, "| `{name}` | {kind} | {labels} | {help} |")?;
        }
    }
    Ok(page)
}
