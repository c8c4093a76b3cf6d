//! The headers of requests and responses (contract: Common rules).

use web::schema::{Node, integer, string};

use super::reference;

/// Of every response.
pub(crate) const EVERYWHERE: [&str; 2] = ["X-Trace-Id", "Cache-Control"];

/// Of every response of `/v1` besides.
pub(super) const LIMITED: [&str; 5] = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit",
    "RateLimit-Policy",
];

/// Of responses that have to do with what goes away.
pub(crate) const GOING: [&str; 3] = ["Deprecation", "Sunset", "Link"];

/// The parameters that several operations have.
pub(super) fn parameters() -> Node {
    let header = |name: &str, required: bool, description: &str, schema: Node, example: &str| {
        Node::of([
            ("name", name.into()),
            ("in", "header".into()),
            ("required", required.into()),
            ("description", description.into()),
            ("schema", schema),
            ("example", example.into()),
        ])
    };
    Node::of([
        (
            "UserAgent",
            header(
                "User-Agent",
                true,
                "Which client it is: `<AppName>/<Version> (+<docs_url>)`, of which the part in parentheses is recommended. The \
                 name is that of the registered application, with `-` or `_` for spaces.",
                string().with(
                    "pattern",
                    "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._-]{0,31}",
                ),
                "KettleSync/1.4 (+https://kettles.example.com/docs)",
            ),
        ),
        (
            "RequestId",
            header(
                "X-Request-Id",
                false,
                "8 to 64 characters of `A-Z a-z 0-9 . _ : -`, which come back as `X-Trace-Id`. Anything else is passed over, and \
                 an id made.",
                string(),
                "order-sync-000017",
            ),
        ),
        (
            "IdempotencyKey",
            header(
                "Idempotency-Key",
                false,
                "For 24 hours the same request with the same key gets the same answer, and has its effect once. Printable \
                 ASCII; a fresh UUID for each thing to be done is a good one.",
                string()
                    .with("minLength", 1)
                    .with("maxLength", 128)
                    .with("pattern", "^[ -~]{1,128}$"),
                "0191f3c4-6c7e-7b1a-8f2e-3d4c5b6a7f80",
            ),
        ),
    ])
}

/// The headers that responses refer to, each by the name of its component.
pub(super) fn of_responses() -> Node {
    let all = everywhere().into_iter().chain(of_limits()).chain(of_what_goes());
    all.chain(of_repeats()).chain(of_authorization()).collect()
}

/// A header of a response.
fn told(required: bool, description: &str, schema: Node) -> Node {
    Node::of([
        ("description", description.into()),
        ("required", required.into()),
        ("schema", schema),
    ])
}

fn seconds() -> Node {
    integer(1, i64::from(u32::MAX))
}

/// Those of every answer.
fn everywhere() -> [(&'static str, Node); 2] {
    let trace = string()
        .with("minLength", 8)
        .with("maxLength", 64)
        .with("pattern", "^[A-Za-z0-9._:-]+$");
    [
        (
            "X-Trace-Id",
            told(
                true,
                "The id of the request: its `X-Request-Id`, or one that was made.",
                trace,
            ),
        ),
        (
            "Cache-Control",
            told(true, "Answers are not to be kept.", string().one_of(["no-store"])),
        ),
    ]
}

/// Those that tell of limits, the contract's and the ecosystem's.
fn of_limits() -> [(&'static str, Node); 5] {
    let count = || integer(0, i64::from(u32::MAX));
    let instant = Node::of([("type", "integer".into()), ("format", "int64".into())]);
    [
        (
            "X-RateLimit-Limit",
            told(true, "Requests a minute of the application.", count()),
        ),
        (
            "X-RateLimit-Remaining",
            told(true, "How many are left, this one taken off.", count()),
        ),
        (
            "X-RateLimit-Reset",
            told(
                true,
                "When the minute ends, in seconds since 1970-01-01T00:00:00Z.",
                instant,
            ),
        ),
        (
            "RateLimit",
            told(
                true,
                "The same for libraries that know draft-ietf-httpapi-ratelimit-headers: `r` requests are left for the next `t` seconds.",
                string()
                    .with("pattern", "^\"default\";r=[0-9]+;t=[0-9]+$")
                    .such_as("\"default\";r=599;t=17"),
            ),
        ),
        (
            "RateLimit-Policy",
            told(
                true,
                "The limit as that draft has it: `q` requests in every `w` seconds.",
                string()
                    .with("pattern", "^\"default\";q=[0-9]+;w=60$")
                    .such_as("\"default\";q=600;w=60"),
            ),
        ),
    ]
}

/// Those that tell of what goes away.
fn of_what_goes() -> [(&'static str, Node); 3] {
    [
        (
            "Deprecation",
            told(
                false,
                "There where something that the request has to do with is deprecated: since when, or from when on, in seconds \
                 since 1970-01-01T00:00:00Z (RFC 9745).",
                string().with("pattern", "^@[0-9]+$").such_as("@1799971200"),
            ),
        ),
        (
            "Sunset",
            told(
                false,
                "When that is gone (RFC 8594).",
                string().such_as("Thu, 15 Jul 2027 00:00:00 GMT"),
            ),
        ),
        (
            "Link",
            told(
                false,
                "Where more is said about it: `rel=\"deprecation\"`, `rel=\"sunset\"` (RFC 8288).",
                string().such_as("</docs/guide/versioning>; rel=\"deprecation\""),
            ),
        ),
    ]
}

/// Those about sending a request again.
fn of_repeats() -> [(&'static str, Node); 3] {
    [
        (
            "Retry-After",
            told(true, "How many seconds to wait; that long suffices.", seconds()),
        ),
        (
            "Retry-After-Perhaps",
            told(false, "How many seconds to wait, where waiting helps.", seconds()),
        ),
        (
            "Idempotent-Replayed",
            told(
                false,
                "There where the answer is that to an earlier request with the same `Idempotency-Key`.",
                string().one_of(["true"]),
            ),
        ),
    ]
}

/// Those of the authorization server, and of refused credentials.
fn of_authorization() -> [(&'static str, Node); 5] {
    let challenge = |scheme: &str| string().with("pattern", format!("^{scheme} "));
    [
        (
            "WWW-Authenticate",
            told(
                true,
                "The challenge (RFC 6750 §3): `error=\"invalid_token\"` with a 401, `error=\"insufficient_scope\"` and the `scope` with a 403.",
                challenge("Bearer").such_as("Bearer realm=\"seller-api\", error=\"invalid_token\""),
            ),
        ),
        (
            "WWW-Authenticate-Basic",
            told(
                false,
                "The challenge, where the client used the `Authorization` header.",
                challenge("Basic"),
            ),
        ),
        (
            "Pragma",
            told(
                true,
                "For caches of old (RFC 6749 §5.1).",
                string().one_of(["no-cache"]),
            ),
        ),
        (
            "Location",
            told(true, "Where the browser goes on.", string().with("format", "uri")),
        ),
        (
            "Referrer-Policy",
            told(
                true,
                "Keeps the query from the next page.",
                string().one_of(["no-referrer"]),
            ),
        ),
    ]
}

/// References to headers, each under its name on the wire and the name of its component.
pub(crate) fn referring<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Node {
    let headers = headers.into_iter();
    headers
        .map(|(name, component)| (name, reference("headers", component)))
        .collect()
}

/// The headers of every response of `/v1`, and these.
pub(super) fn of_v1(more: &[(&str, &str)]) -> Node {
    let every = EVERYWHERE.into_iter().chain(LIMITED).chain(GOING);
    let every = every.map(|name| (name, name));
    referring(every.chain(more.iter().copied()))
}
