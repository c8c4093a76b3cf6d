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
        granted: None,
        requested: ScopeSet::default(),
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
fn without_a_trusted_redirect_uri_the_error_is_shown_directly() {
    let direct = |refused: Option<AuthorizationRefusal>| match refused {
        Some(AuthorizationRefusal::Direct(text)) => text,
        other => panic!("{other:?}"),
    };
    for uri in [
        None,
        Some(""),
        Some("https://app.example/cb/"),
        Some("https://APP.example/cb"),
        Some("https://app.example:443/cb"),
        Some("http://app.example/cb"),
        Some("https://app.example/%63b"),
        Some("https://app.example.evil.example/cb"),
        Some("https://app.example/cb "),
        Some("//app.example/cb"),
    ] {
        direct(check(&query(&[("redirect_uri", uri)], &[])).err());
    }
    direct(query(&[("client_id", None)], &[]).client_id().err());
    let twice = |name| query(&[], &[(name, "x")]);
    assert!(direct(twice("client_id").client_id().err()).contains("once"));
    assert!(direct(check(&twice("redirect_uri")).err()).contains("once"));
    assert_eq!(query(&[("client_id", Some("x"))], &[]).client_id(), Ok(None));
    let [mut suspended, mut built_in] = [application(), application()];
    suspended.status = ApplicationStatus::Suspended;
    built_in.built_in = true;
    for unusable in [None, Some(suspended), Some(built_in)] {
        // This is checked before the redirect URI.
        let refused = query(&[("redirect_uri", None)], &[]).check(unusable.as_ref());
        assert!(matches!(refused, Err(AuthorizationRefusal::Client(_))));
    }
}

#[test]
fn other_errors_are_redirected_in_the_order_of_the_checks_with_a_usable_state() {
    use RedirectError::{InvalidRequest, InvalidScope, UnsupportedResponseType};
    let cases: [(&str, Option<&str>, RedirectError); 16] = [
        ("response_type", None, InvalidRequest),
        ("response_type", Some(""), InvalidRequest),
        ("response_type", Some("code token"), UnsupportedResponseType),
        ("response_type", Some("CODE"), UnsupportedResponseType),
        ("code_challenge", None, InvalidRequest),
        ("code_challenge", Some("short"), InvalidRequest),
        ("code_challenge_method", None, InvalidRequest),
        ("code_challenge_method", Some("plain"), InvalidRequest),
        ("code_challenge_method", Some("s256"), InvalidRequest),
        ("scope", None, InvalidScope),
        ("scope", Some(""), InvalidScope),
        ("scope", Some(" "), InvalidScope),
        ("scope", Some("no:such"), InvalidScope),
        ("scope", Some("offers:read messaging"), InvalidScope),
        ("scope", Some("offers:read,orders:read"), InvalidScope),
        ("scope", Some("offers:read offers:write"), InvalidScope),
    ];
    for (name, value, error) in cases {
        let expected = (error, Some("12345678".to_owned()));
        let redirected = redirected(&query(&[(name, value)], &[]));
        assert_eq!(redirected, expected, "{name}={value:?}");
    }
    let (token, long, longest) = (Some("token"), "x".repeat(1025), "ż".repeat(1024));
    let usable = |state: &'static str| Some(state.to_owned());
    let state = |state| query(&[("state", state)], &[]);
    let twice = |name| query(&[("response_type", token)], &[(name, "87654321")]);
    let untyped = query(&[("response_type", token), ("state", Some("x"))], &[]);
    let stateless = query(&[("state", Some("x")), ("code_challenge", None)], &[]);
    let unchallenged = query(&[("code_challenge", None), ("scope", None)], &[]);
    for (query, error, state) in [
        // A repetition comes before the response type, and that before the state.
        (twice("scope"), InvalidRequest, usable("12345678")),
        (twice("state"), InvalidRequest, None),
        (untyped, UnsupportedResponseType, usable("x")),
        // The state comes before the challenge, and that before the scope.
        (stateless, InvalidRequest, usable("x")),
        (unchallenged, InvalidRequest, usable("12345678")),
        (state(None), InvalidRequest, None),
        (state(Some("1234567")), InvalidRequest, usable("1234567")),
        (state(Some(&long)), InvalidRequest, None),
    ] {
        assert_eq!(redirected(&query), (error, state), "{query:?}");
    }
    assert_eq!(check(&state(Some(&longest))).unwrap().state, longest);
    let names = RedirectError::ALL.map(RedirectError::as_str).join(" ");
    let expected = "unsupported_response_type invalid_request invalid_scope access_denied";
    assert_eq!(names, expected);
}

#[test]
fn parameters_are_appended_to_an_existing_query() {
    let parameters = [("code", "a b"), ("state", "1&2=ż")];
    let written = "code=a+b&state=1%262%3D%C5%BC";
    for (address, joint) in [
        ("https://a.example/cb", "?"),
        ("https://a.example/cb?", ""),
        ("https://a.example/cb?x=1", "&"),
        ("https://a.example/cb?x=1&", ""),
    ] {
        let url = redirect_url(address, &parameters);
        assert_eq!(url, format!("{address}{joint}{written}"));
    }
}
