//! `GET /oauth/authorize`

use actix_web::http::Method;
use actix_web::test::TestRequest;
use chrono::TimeDelta;
use oauth::{Application, ApplicationStatus, ClientType, ConsentTicket, Limiter, Purpose, ScopeSet, Subject};
use usecases::consent_ticket;

use super::fakes::PlainSealer;
use super::fixture::{Answered, Fixture, count, unavailable};
use super::grants::{BACK, CHALLENGE};
use super::token_endpoint::{CLIENT, application, is};

const SCREEN: &str = "https://api.shop.example/panel/consent?request=";

fn asking() -> Application {
    Application {
        purpose: Purpose::ForOtherSellers,
        client_type: ClientType::Public,
        secret: None,
        redirect_uris: vec!["https://app.example/other".to_owned(), BACK.to_owned()],
        ..application()
    }
}

/// A listener that knows the application and has room for one more call.
fn known(application: Application) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().once().returning(|limiter, subject| {
        assert_eq!(limiter, Limiter::AuthorizeByAddress);
        assert_eq!(subject, Subject::address("192.0.2.1".parse().unwrap()));
        Ok(count(60))
    });
    fixture
        .applications
        .expect_client()
        .returning(move |asked| Ok((asked == application.client_id).then(|| application.clone())));
    fixture
}

/// The query of a request that is fine, with some parameters changed or, where empty, left out; values as they are sent.
fn query(changes: &[(&str, &str)]) -> String {
    let fine = [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", "https%3A%2F%2Fapp.example%2Fcb%3Ffrom%3Dshop"),
        ("scope", "offers:read+orders:read"),
        ("state", "%C5%BC%20%26a=1234"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
    let kept = fine.iter().filter(|(name, _)| !is_changed(name));
    let pairs = kept.chain(changes).filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

fn get(query: &str) -> TestRequest {
    TestRequest::get().uri(&format!("/oauth/authorize?{query}"))
}

/// Where the browser is sent.
fn location(answered: &Answered) -> &str {
    assert_eq!(answered.status, 302, "{}", answered.text());
    assert!(answered.bytes.is_empty());
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("pragma"), Some("no-cache"));
    assert_eq!(answered.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answered.header("x-trace-id").unwrap().len(), 32);
    answered.header("location").unwrap()
}

fn ticket(answered: &Answered) -> ConsentTicket {
    let handle = location(answered).strip_prefix(SCREEN).unwrap();
    consent_ticket::open(&PlainSealer, handle).unwrap()
}

#[actix_web::test]
async fn a_good_request_goes_on_to_the_consent_screen() {
    let answered = known(asking()).send(get(&query(&[]))).await;
    let ticket = ticket(&answered);
    let request = ticket.request;
    assert_eq!(request.client_id, asking().client_id);
    assert_eq!(request.redirect_uri, BACK);
    assert_eq!(
        request.scopes,
        ScopeSet::parse("offers:read orders:read").unwrap()
    );
    assert_eq!(request.state, "ż &a=1234");
    assert_eq!(request.challenge.as_str(), CHALLENGE);
    // By the database's clock, which is told with the count.
    assert_eq!(ticket.expires_at, count(1).counted_at + TimeDelta::minutes(10));
}

#[actix_web::test]
async fn other_spellings_are_fine_too() {
    for query in [
        query(&[("scope", "offers:read%20offers:read%20")]),
        query(&[]) + "&unknown=1&&",
        query(&[]) + "&broken=%zz&%zz=1",
        query(&[("redirect_uri", BACK)]),
    ] {
        ticket(&known(asking()).send(get(&query)).await);
    }
    let head = get(&query(&[])).method(Method::HEAD);
    ticket(&known(asking()).send(head).await);
}

#[actix_web::test]
async fn a_pending_application_may_ask_and_is_judged_once_the_seller_is_known() {
    let pending = Application {
        status: ApplicationStatus::Pending,
        ..asking()
    };
    ticket(&known(pending).send(get(&query(&[]))).await);
}

/// What the browser itself is told: nobody is redirected to where nobody vouches for.
#[actix_web::test]
async fn what_leaves_no_address_to_trust_is_told_directly() {
    let suspended = Application {
        status: ApplicationStatus::Suspended,
        ..asking()
    };
    let built_in = Application {
        built_in: true,
        ..asking()
    };
    let cases = [
        (asking(), query(&[("client_id", "")]), "invalid_request"),
        (asking(), query(&[("client_id", "%zz")]), "invalid_request"),
        (asking(), query(&[]) + "&client_id=" + CLIENT, "invalid_request"),
        (asking(), query(&[("client_id", "psa_x")]), "invalid_client"),
        (
            asking(),
            query(&[("client_id", "psa_000000000000000000000000000000ff")]),
            "invalid_client",
        ),
        (suspended, query(&[]), "invalid_client"),
        (built_in, query(&[]), "invalid_client"),
        (asking(), query(&[("redirect_uri", "")]), "invalid_request"),
        (asking(), query(&[("redirect_uri", "%zz")]), "invalid_request"),
        (
            asking(),
            query(&[("redirect_uri", "https://app.example/cb")]),
            "invalid_request",
        ),
        (
            asking(),
            query(&[("redirect_uri", "https://APP.example/cb?from=shop")]),
            "invalid_request",
        ),
        (
            asking(),
            query(&[]) + "&redirect_uri=https://app.example/other",
            "invalid_request",
        ),
    ];
    for (application, query, error) in cases {
        let answered = known(application).send(get(&query)).await;
        is(&answered, 400, error);
        assert_eq!(answered.header("location"), None);
        assert_eq!(answered.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answered.header("www-authenticate"), None);
    }
    is(&known(asking()).send(get("")).await, 400, "invalid_request");
}

/// The parameters that go back to the client, in clear.
fn sent_back(answered: &Answered) -> Vec<(String, String)> {
    let query = location(answered).strip_prefix(&format!("{BACK}&")).unwrap();
    let form = web::form::Form::parse(query.as_bytes()).unwrap();
    let pairs = form.pairs();
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[actix_web::test]
async fn everything_else_goes_back_to_the_client() {
    let (long, longest) = ("s".repeat(1_025), "s".repeat(1_024));
    let state = Some("ż &a=1234");
    let cases = [
        (query(&[]) + "&state=12345678", "invalid_request", None),
        (query(&[]) + "&scope=x", "invalid_request", state),
        (query(&[]) + "&x=1&x=1", "invalid_request", state),
        (query(&[("response_type", "")]), "invalid_request", state),
        (
            query(&[("response_type", "token")]),
            "unsupported_response_type",
            state,
        ),
        (query(&[("state", "")]), "invalid_request", None),
        (query(&[("state", "%ff")]), "invalid_request", None),
        (query(&[("state", "1234567")]), "invalid_request", Some("1234567")),
        (query(&[("state", &long)]), "invalid_request", None),
        (
            query(&[("state", &longest), ("scope", "")]),
            "invalid_scope",
            Some(longest.as_str()),
        ),
        (query(&[("code_challenge", "")]), "invalid_request", state),
        (query(&[("code_challenge", "short")]), "invalid_request", state),
        (query(&[("code_challenge_method", "")]), "invalid_request", state),
        (
            query(&[("code_challenge_method", "plain")]),
            "invalid_request",
            state,
        ),
        (query(&[("scope", "")]), "invalid_scope", state),
        (query(&[("scope", "nonsense")]), "invalid_scope", state),
        (query(&[("scope", "offers:write")]), "invalid_scope", state),
    ];
    for (query, error, state) in cases {
        let answered = known(asking()).send(get(&query)).await;
        let back = sent_back(&answered);
        let get = |name: &str| {
            back.iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(get("error"), Some(error), "{query}");
        assert_eq!(get("state"), state, "{query}");
        assert_eq!(get("iss"), Some("https://api.shop.example"));
        let description = get("error_description").unwrap();
        assert!(!description.is_empty() && description.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        assert_eq!(back.len(), if state.is_some() { 4 } else { 3 });
    }
}

#[actix_web::test]
async fn of_two_faults_the_earlier_is_told() {
    // In the order of the checks (D80): what is spoilt, and the error.
    let faults: [(&[(&str, &str)], &str); 7] = [
        (&[("client_id", "psa_x")], "invalid_client"),
        (&[("redirect_uri", "https://other.example/")], "not registered"),
        (&[("x", "1&x=1")], "parameter x"),
        (&[("response_type", "token")], "unsupported_response_type"),
        (&[("state", "short")], "Send state"),
        (&[("code_challenge_method", "plain")], "code_challenge_method"),
        (&[("scope", "nonsense")], "invalid_scope"),
    ];
    for (n, (first, told)) in faults.iter().enumerate() {
        for (second, _) in &faults[n + 1..] {
            let query = query(&[*first, *second].concat());
            let answered = known(asking()).send(get(&query)).await;
            let text = match answered.header("location") {
                Some(location) => location.replace('+', " "),
                None => answered.text().to_owned(),
            };
            assert!(text.contains(told), "{query}: {text}");
        }
    }
}

#[actix_web::test]
async fn the_limit_comes_first_and_is_told_in_json() {
    let mut fixture = Fixture::new();
    fixture
        .rates
        .expect_count()
        .once()
        .returning(|_, _| Ok(count(61)));
    let answered = fixture.send(get("")).await;
    is(&answered, 429, "rate_limited");
    assert_eq!(answered.header("retry-after"), Some("40"));
}

#[actix_web::test]
async fn a_failing_store_is_a_server_error() {
    let mut fixture = Fixture::new();
    fixture
        .rates
        .expect_count()
        .once()
        .returning(|_, _| Err(unavailable()));
    is(&fixture.send(get(&query(&[]))).await, 500, "server_error");
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(|_, _| Ok(count(1)));
    fixture
        .applications
        .expect_client()
        .returning(|_| Err(unavailable()));
    let answered = fixture.send(get(&query(&[]))).await;
    is(&answered, 500, "server_error");
    assert_eq!(answered.header("retry-after"), Some("1"));
}

#[actix_web::test]
async fn a_query_beyond_the_cap_is_refused() {
    let long = "s".repeat(9 * 1024);
    let answered = Fixture::new().send(get(&query(&[("state", &long)]))).await;
    is(&answered, 400, "invalid_request");
}
