//! How the seller's browser comes back to the application (RFC 6749 §4.1.2, RFC 9207).

use oauth::RedirectError;
use web::schema::{Node, string, uri};

use crate::declared::Tag;
use crate::document::examples;

/// What the application gets at its address.
pub(super) fn callbacks() -> Node {
    let parameter = |name: &str, required: bool, description: &str, schema: Node| {
        Node::of([
            ("name", name.into()),
            ("in", "query".into()),
            ("required", required.into()),
            ("description", description.into()),
            ("schema", schema),
        ])
    };
    let code = examples::code();
    let parameters = vec![
        parameter(
            "code",
            false,
            "After consent: to be exchanged within ten minutes.",
            string().such_as(code.reveal()),
        ),
        parameter("error", false, "Otherwise: why there is no code.", error()),
        parameter(
            "error_description",
            false,
            "What was wrong with the request, for developers. The words may change.",
            string(),
        ),
        parameter(
            "state",
            false,
            "The request's own; not there where it had none that could be returned. The application compares it.",
            string().such_as(examples::STATE),
        ),
        parameter(
            "iss",
            true,
            "The `issuer` of the metadata. The application compares it (RFC 9207).",
            uri(),
        ),
    ];
    let said = |description: &str| Node::of([("description", description.into())]);
    let answers = Node::of([
        ("default", said("What the application shows the seller.")),
        (
            "4XX",
            said("`state` or `iss` is not the one expected: the application goes no further."),
        ),
    ]);
    let returning = Node::of([
        ("tags", vec![Tag::Authorization.name().into()].into()),
        ("summary", "The seller's browser comes back".into()),
        (
            "description",
            "With `code` or with `error`, and with whatever else the query of `redirect_uri` has.".into(),
        ),
        ("security", Vec::new().into()),
        ("parameters", parameters.into()),
        ("responses", answers),
    ]);
    let at_address = Node::of([("{$request.query.redirect_uri}", Node::of([("get", returning)]))]);
    Node::of([("authorizationResponse", at_address)])
}

/// The errors that go back by the browser: from here, or from the consent screen.
pub(super) fn error() -> Node {
    string()
        .one_of(RedirectError::ALL.map(RedirectError::as_str))
        .said("The `error` with which the browser comes back to `redirect_uri`.")
        .named("AuthorizationRedirectError")
}

/// The same as a list (Markdown).
pub(super) fn errors() -> String {
    let item = |error: RedirectError| {
        let when = match error {
            RedirectError::UnsupportedResponseType => "`response_type` is not `code`.",
            RedirectError::InvalidRequest => {
                "a parameter is missing, repeated or malformed; `state` comes back if it was sent once and has at most 1024 characters."
            }
            RedirectError::InvalidScope => {
                "`scope` is empty, or names what does not exist or the application does not hold."
            }
            RedirectError::AccessDenied => {
                "the seller refused, or the application may not ask this seller: it is `pending`, or registered for its owner's own use."
            }
        };
        format!("* `{}`: {when}\n", error.as_str())
    };
    RedirectError::ALL.map(item).concat()
}
