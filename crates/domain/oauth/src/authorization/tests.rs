//! The authorization request, rule by rule.

use chrono::DateTime;
use uuid::Uuid;

use super::*;
use crate::{ClientType, Purpose, Scope};

const GOOD: [(&str, &str); 7] = [
    ("response_type", "code"),
    ("client_id", "psa_AAAAAAAAAAAAAAAAAAAAAA"),
    ("redirect_uri", "https://app.example/cb?x=1"),
    ("scope", "offers:read orders:read offers:read"),
    ("state", "12345678"),
    ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
    ("code_challenge_method", "S256"),
];

fn application() -> Application {
    Application {
        client_id: Uuid::nil().into(),
        owner: Uuid::nil().into(),
        name: "Sync".to_owned(),
        description: None,
        documentation_url: Some("https://docs.example".to_owned()),
        purpose: Purpose::ForOtherSellers,
        client_type: ClientType::Public,
        redirect_uris: vec![
            "https://app.example/cb".to_owned(),
            "https://app.example/cb?x=1".to_owned(),
        ],
        scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
        status: ApplicationStatus::Pending,
        rate_limit: None,
        built_in: false,
        secret: None,
        created_at: DateTime::UNIX_EPOCH,
    }
}

/// The valid request with some parameters replaced (`None` removes one), and others added.
fn query(changes: &[(&str, Option<&str>)], added: &[(&str, &str)]) -> AuthorizationQuery {
    let kept_or_new = |name: &str, value: &str| {
        let replaced = changes.iter().find(|(other, _)| *other == name);
        replaced.map_or(Some(value.to_owned()), |(_, new)| new.map(str::to_owned))
    };
    let given = GOOD
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), kept_or_new(name, value)?)));
    let added = added
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    AuthorizationQuery::new(given.chain(added).collect())
}

fn check(query: &AuthorizationQuery) -> Result<AuthorizationRequest, AuthorizationRefusal> {
    query.check(Some(&application()))
}

fn redirected(query: &AuthorizationQuery) -> (RedirectError, Option<String>) {
    match check(query).unwrap_err() {
        AuthorizationRefusal::Redirected { error, state, .. } => (error, state),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proper_request_passes() {
    let request = check(&query(&[], &[("unknown", "x")])).unwrap();
    assert_eq!(request.redirect_uri, "https://app.example/cb?x=1");
    assert_eq!(request.scopes.to_string(), "offers:read orders:read");
    assert_eq!(request.state, "12345678");
}

#[test]
fn whom_the_answer_cannot_be_sent_to_is_told_directly() {
    let is_direct = |query: AuthorizationQuery| matches!(check(&query), Err(AuthorizationRefusal::Direct(_)));
    for uri in [
        None,
        Some(""),
        Some("https://app.example/cb/"),
        Some("https://APP.example/cb"),
        Some("https://evil.example"),
    ] {
        assert!(is_direct(query(&[("redirect_uri", uri)], &[])), "{uri:?}");
    }
    assert!(is_direct(query(
        &[],
        &[("redirect_uri", "https://app.example/cb")]
    )));
    assert!(matches!(
        query(&[("client_id", None)], &[]).client_id(),
        Err(AuthorizationRefusal::Direct(_))
    ));
    assert!(matches!(
        query(&[], &[("client_id", "x")]).client_id(),
        Err(AuthorizationRefusal::Direct(_))
    ));
    assert_eq!(query(&[("client_id", Some("x"))], &[]).client_id(), Ok(None));
    let names_once =
        |refused| matches!(refused, Some(AuthorizationRefusal::Direct(text)) if text.contains("once"));
    let twice = |name| query(&[], &[(name, "x")]);
    assert!(names_once(twice("client_id").client_id().err()));
    assert!(names_once(check(&twice("redirect_uri")).err()));
    for nobody in [
        None,
        Some(Application {
            status: ApplicationStatus::Suspended,
            ..application()
        }),
        Some(Application {
            built_in: true,
            ..application()
        }),
    ] {
        // This is checked before the redirect URI.
        let refused = query(&[("redirect_uri", None)], &[]).check(nobody.as_ref());
        assert!(
            matches!(refused, Err(AuthorizationRefusal::Client(_))),
            "{nobody:?}"
        );
    }
}

#[test]
fn everything_else_goes_back_with_the_state_in_the_order_of_the_checks() {
    use RedirectError::{InvalidRequest, InvalidScope, UnsupportedResponseType};
    let state = Some("12345678".to_owned());
    let cases: [(&str, Option<&str>, RedirectError); 13] = [
        ("response_type", None, InvalidRequest),
        ("response_type", Some(""), InvalidRequest),
        ("response_type", Some("token"), UnsupportedResponseType),
        ("code_challenge", None, InvalidRequest),
        ("code_challenge", Some("short"), InvalidRequest),
        ("code_challenge_method", None, InvalidRequest),
        ("code_challenge_method", Some("plain"), InvalidRequest),
        ("code_challenge_method", Some("s256"), InvalidRequest),
        ("scope", None, InvalidScope),
        ("scope", Some(""), InvalidScope),
        ("scope", Some(" "), InvalidScope),
        ("scope", Some("no:such"), InvalidScope),
        ("scope", Some("offers:read offers:write"), InvalidScope),
    ];
    for (name, value, error) in cases {
        assert_eq!(
            redirected(&query(&[(name, value)], &[])),
            (error, state.clone()),
            "{name}={value:?}"
        );
    }
    let both = query(
        &[("scope", None), ("response_type", Some("token"))],
        &[("scope", "x"), ("scope", "y")],
    );
    assert_eq!(
        redirected(&both),
        (InvalidRequest, state),
        "repetition comes before the response type"
    );
    let ordered = query(&[("response_type", Some("token")), ("state", Some("x"))], &[]);
    assert_eq!(
        redirected(&ordered),
        (UnsupportedResponseType, Some("x".to_owned()))
    );
}

#[test]
fn errors_go_by_the_words_of_the_rfc() {
    let words = [
        "unsupported_response_type",
        "invalid_request",
        "invalid_scope",
        "access_denied",
    ];
    assert_eq!(RedirectError::ALL.map(RedirectError::as_str), words);
}

#[test]
fn a_state_is_echoed_where_it_can_be() {
    let invalid = RedirectError::InvalidRequest;
    assert_eq!(redirected(&query(&[("state", None)], &[])), (invalid, None));
    assert_eq!(
        redirected(&query(&[("state", Some("1234567"))], &[])),
        (invalid, Some("1234567".to_owned()))
    );
    assert_eq!(
        redirected(&query(&[("state", Some(&"x".repeat(1025)))], &[])),
        (invalid, None)
    );
    assert_eq!(
        redirected(&query(&[], &[("state", "12345678")])),
        (invalid, None),
        "which of the two?"
    );
    let longest = "ż".repeat(1024);
    assert_eq!(
        check(&query(&[("state", Some(&longest))], &[])).unwrap().state,
        longest
    );
}

#[test]
fn answers_join_a_query_that_is_there() {
    let parameters = [("code", "a b"), ("state", "1&2=ż")];
    let written = "code=a+b&state=1%262%3D%C5%BC";
    for (address, joint) in [
        ("https://a.example/cb", "?"),
        ("https://a.example/cb?", ""),
        ("https://a.example/cb?x=1", "&"),
        ("https://a.example/cb?x=1&", ""),
    ] {
        assert_eq!(
            answer_to(address, &parameters),
            format!("{address}{joint}{written}")
        );
    }
}
