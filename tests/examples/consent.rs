//! A seller's consent to the example, and the use of the resulting refresh token.

use std::collections::HashSet;

use blackbox::{Callback, Exchange, Pair, Visitor, challenge, encoded};

use crate::shop::Shop;

const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters";

/// The refresh token of a new consent by a seller.
pub(crate) async fn refresh_token(shop: &Shop, seller: usize) -> String {
    let text = |name: &str| shop.seller(seller)[name].as_str().unwrap();
    let application = shop.partner();
    let redirect = application["redirect_uris"][0].as_str().unwrap();
    let mut browser = Visitor::new(&shop.client, shop.base_url());
    browser.sign_in(text("email"), text("password")).await.expect(200);
    let scope = "offers:write orders:read shipments:write settings:read settings:write";
    let query = [
        ("response_type", "code"),
        ("client_id", application["client_id"].as_str().unwrap()),
        ("redirect_uri", redirect),
        ("scope", scope),
        ("state", "state-of-the-test"),
        ("code_challenge", &challenge(VERIFIER)),
        ("code_challenge_method", "S256"),
    ];
    let page = browser
        .page(&format!("/oauth/authorize?{}", encoded(&query)))
        .await;
    let form = page.form("/panel/consent").press("decision", "approve");
    let code = Callback::of(&browser.post(&form).await).code();
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", redirect),
        ("code_verifier", VERIFIER),
        ("client_id", application["client_id"].as_str().unwrap()),
        ("client_secret", application["client_secret"].as_str().unwrap()),
    ];
    let request = shop.client.post(&format!("{}/oauth/token", shop.base_url()));
    Pair::of(request.form(&encoded(&fields)).send().await).refresh
}

/// Asserts that each refresh used the token of the previous one, under a key of its own.
pub(crate) fn each_was_used_once(shop: &Shop, first: &str) {
    let refreshes = shop.calls.exchanges("POST", "/oauth/token");
    assert!(refreshes.len() >= 3, "{refreshes:?}");
    let mut expected = first.to_owned();
    let mut keys = HashSet::new();
    for refresh in refreshes {
        assert_eq!(used(&refresh.request.body), Some(expected));
        assert!(keys.insert(key(&refresh).to_owned()));
        expected = Pair::of(refresh.answered().clone()).refresh;
    }
}

/// Asserts that these refreshes are one and its repeats, and that all that succeeded gave the same pair.
pub(crate) fn is_under_one_key(refreshes: &[Exchange]) {
    let first = &refreshes[0];
    for again in refreshes {
        assert_eq!(key(again), key(first));
        assert_eq!(again.request.body, first.request.body);
    }
    let answers = refreshes.iter().map(Exchange::answered);
    let given = answers.filter(|answer| answer.status == 200);
    let given: Vec<_> = given.map(|answer| Pair::of(answer.clone())).collect();
    for pair in &given {
        assert_eq!(
            (&pair.access, &pair.refresh),
            (&given[0].access, &given[0].refresh)
        );
    }
}

/// The `Idempotency-Key` of a request.
pub(crate) fn key(exchange: &Exchange) -> &str {
    exchange.request.header("idempotency-key")
}

/// Asserts that the last refresh used this token.
pub(crate) fn was_used_last(shop: &Shop, token: &str) {
    let refreshes = shop.calls.exchanges("POST", "/oauth/token");
    let last = refreshes.last().unwrap();
    assert_eq!(used(&last.request.body).as_deref(), Some(token));
}

fn used(form: &[u8]) -> Option<String> {
    let mut fields = url::form_urlencoded::parse(form);
    let found = fields.find(|(name, _)| name == "refresh_token");
    found.map(|(_, value)| value.into_owned())
}
