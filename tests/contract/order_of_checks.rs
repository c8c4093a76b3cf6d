//! Of everything that is wrong with a request, the earliest check is what is answered.

use blackbox::{Expect, World, offer_id};
use reqwest::Method;
use serde_json::json;
use testkit::Answer;

use crate::world;

/// What can be wrong, in the order of the checks, with the answer each gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    UserAgent,
    Token,
    Rate,
    Route,
    Scope,
    Decode,
    Resource,
}

const ORDER: [(Fault, u16, &str); 7] = [
    (Fault::UserAgent, 400, "missing_user_agent"),
    (Fault::Token, 401, "unauthorized"),
    (Fault::Rate, 429, "rate_limited"),
    (Fault::Route, 404, "not_found"),
    (Fault::Scope, 403, "insufficient_scope"),
    (Fault::Decode, 400, "validation_error"),
    (Fault::Resource, 404, "not_found"),
];

/// A token for each way of being good or bad.
struct Tokens(Vec<(Vec<Fault>, String)>);

impl Tokens {
    async fn make(world: &World) -> Self {
        let mut tokens = Vec::new();
        for limited in [false, true] {
            let seller = world.seller().await;
            world.offer(&seller, 1, json!({})).await;
            for scope in ["offers:read", "offers:write"] {
                let good = world.personal_token(&seller, &[scope]).await;
                let revoked = world.personal_token(&seller, &[scope]).await;
                let path = format!("/sellers/{}/personal-tokens/{}", seller.id, revoked.id);
                world.office(Method::DELETE, &path).send().await.expect(204);
                for (token, is_revoked) in [(good.token, false), (revoked.token, true)] {
                    let mut faults = Vec::new();
                    faults.extend(is_revoked.then_some(Fault::Token));
                    faults.extend(limited.then_some(Fault::Rate));
                    faults.extend((scope != "offers:read").then_some(Fault::Scope));
                    tokens.push((faults, token));
                }
            }
            if limited {
                let token = tokens
                    .iter()
                    .find(|(faults, _)| *faults == [Fault::Rate])
                    .unwrap();
                let me = world.get(&token.1, "/v1/me").await.expect(200).json();
                let client_id = me["app"]["client_id"].as_str().unwrap();
                world
                    .adjust(client_id, &json!({"rate_limit": 1}))
                    .await
                    .expect(200);
            }
        }
        Self(tokens)
    }

    fn with(&self, faults: &[Fault]) -> &str {
        let of_tokens = [Fault::Token, Fault::Rate, Fault::Scope];
        let wanted: Vec<_> = of_tokens
            .into_iter()
            .filter(|fault| faults.contains(fault))
            .collect();
        &self.0.iter().find(|(faults, _)| *faults == wanted).unwrap().1
    }
}

async fn send(world: &World, tokens: &Tokens, faults: &[Fault], wrong_method: bool) -> Answer {
    let wrong = |fault| faults.contains(&fault);
    let mut path = format!(
        "/v1/offers/{}",
        offer_id(if wrong(Fault::Resource) { 2 } else { 1 })
    );
    let mut method = Method::GET;
    if wrong(Fault::Route) {
        if wrong_method {
            method = Method::DELETE;
        } else {
            path += "/nothing";
        }
    }
    if wrong(Fault::Decode) {
        path += "?fields=nothing";
    }
    let mut request = world
        .client
        .request(method, &world.url(&path))
        .bearer(tokens.with(faults));
    if wrong(Fault::UserAgent) {
        request = request.without("user-agent");
    }
    request.send().await
}

#[tokio::test]
async fn the_earliest_of_any_set_of_faults_is_answered() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let tokens = Tokens::make(&world).await;
    for set in 0_u32..128 {
        let faults: Vec<_> = (0_u32..)
            .zip(ORDER)
            .filter(|(n, _)| set & (1 << n) != 0)
            .map(|(_, (fault, ..))| fault)
            .collect();
        for wrong_method in [false, true] {
            let answer = send(&world, &tokens, &faults, wrong_method).await;
            let Some((first, status, code)) = ORDER.into_iter().find(|(fault, ..)| faults.contains(fault))
            else {
                answer.expect(200);
                continue;
            };
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (status, code),
                "{faults:?}, {wrong_method}"
            );
            let uncounted = matches!(first, Fault::UserAgent | Fault::Token);
            let untouched = answer.number("x-ratelimit-remaining") == answer.number("x-ratelimit-limit");
            assert_eq!(uncounted, untouched, "{faults:?}: {:?}", answer.headers);
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_comes_after_scope_and_before_the_resource() {
    let world = world().await;
    let (seller, reads) = world.reader().await;
    let writes = world.personal_token(&seller, &["offers:write"]).await.token;
    let (offers, one) = ("/v1/offers".to_owned(), format!("/v1/offers/{}", offer_id(9)));
    let cases = [
        (&offers, Some("Tests"), &reads, 400, "missing_user_agent"),
        (&offers, None, &"ps_at_unknown".to_owned(), 401, "unauthorized"),
        (&"/v1/nothing".to_owned(), None, &reads, 404, "not_found"),
        (&offers, None, &writes, 403, "insufficient_scope"),
        (&offers, None, &reads, 400, "validation_error"),
        (&one, None, &reads, 400, "validation_error"),
    ];
    for (path, agent, token, status, code) in cases {
        let mut request = world
            .client
            .get(&world.url(path))
            .bearer(token)
            .body("x".repeat(65 * 1024));
        if let Some(agent) = agent {
            request = request.without("user-agent").header("user-agent", agent);
        }
        request.send().await.refused(status, code);
    }
}
