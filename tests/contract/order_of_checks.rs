//! If a request has several errors, the earliest check determines the answer.

use blackbox::{Expect, World, offer_id};
use serde_json::json;
use testkit::Answer;

use crate::world;

/// The possible errors in the order of their checks, with their answers.
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

/// A token for each combination of errors.
async fn tokens(world: &World) -> Vec<(Vec<Fault>, String)> {
    let mut tokens = Vec::new();
    for limited in [false, true] {
        let seller = world.seller().await;
        world.offer(&seller, 1, json!({})).await;
        for scope in ["offers:read", "offers:write"] {
            let good = world.personal_token(&seller, &[scope]).await;
            let revoked = world.personal_token(&seller, &[scope]).await;
            world.revoke_personal(&seller, &revoked).await;
            for (token, is_revoked) in [(good.token, false), (revoked.token, true)] {
                let mut faults = Vec::new();
                faults.extend(is_revoked.then_some(Fault::Token));
                faults.extend(limited.then_some(Fault::Rate));
                faults.extend((scope != "offers:read").then_some(Fault::Scope));
                tokens.push((faults, token));
            }
        }
        if limited {
            let (_, token) = tokens
                .iter()
                .find(|(faults, _)| *faults == [Fault::Rate])
                .unwrap();
            world.set_limit(token, 1).await;
        }
    }
    tokens
}

async fn send(
    world: &World,
    tokens: &[(Vec<Fault>, String)],
    faults: &[Fault],
    wrong_method: bool,
) -> Answer {
    let wrong = |fault| faults.contains(&fault);
    let (method, suffix) = match (wrong(Fault::Route), wrong_method) {
        (true, true) => ("DELETE", ""),
        (true, false) => ("GET", "/nothing"),
        _ => ("GET", ""),
    };
    let id = offer_id(if wrong(Fault::Resource) { 2 } else { 1 });
    let mut path = format!("/v1/offers/{id}{suffix}");
    if wrong(Fault::Decode) {
        path += "?fields=nothing";
    }
    let of_tokens = [Fault::Token, Fault::Rate, Fault::Scope].into_iter();
    let requested: Vec<_> = of_tokens.filter(|fault| wrong(*fault)).collect();
    let (_, token) = tokens.iter().find(|(faults, _)| *faults == requested).unwrap();
    let request = world.at(method, &path).bearer(token);
    if wrong(Fault::UserAgent) {
        return request.without("user-agent").send().await;
    }
    request.send().await
}

#[tokio::test]
async fn the_earliest_failed_check_determines_the_answer() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let tokens = tokens(&world).await;
    for set in 0_u32..128 {
        let chosen = (0_u32..).zip(ORDER).filter(|(n, _)| set & (1 << n) != 0);
        let faults: Vec<_> = chosen.map(|(_, (fault, ..))| fault).collect();
        for wrong_method in [false, true] {
            let answer = send(&world, &tokens, &faults, wrong_method).await;
            let Some((first, status, code)) = ORDER.into_iter().find(|(fault, ..)| faults.contains(fault))
            else {
                answer.expect(200);
                continue;
            };
            let found = (answer.status, answer.code());
            assert_eq!(found, (status, code.to_owned()), "{faults:?}, {wrong_method}");
            let uncounted = matches!(first, Fault::UserAgent | Fault::Token);
            let untouched = answer.number("x-ratelimit-remaining") == answer.number("x-ratelimit-limit");
            assert_eq!(uncounted, untouched, "{faults:?}: {:?}", answer.headers);
        }
    }
}

#[tokio::test]
async fn the_body_size_is_checked_after_the_scope_and_before_the_resource() {
    let world = world().await;
    let (seller, reads) = world.reader().await;
    let writes = world.personal_token(&seller, &["offers:write"]).await.token;
    let one = format!("/v1/offers/{}", offer_id(9));
    for (path, agent, token, status, code) in [
        ("/v1/offers", "Tests", reads.as_str(), 400, "missing_user_agent"),
        ("/v1/offers", "Tests/1", "ps_at_unknown", 401, "unauthorized"),
        ("/v1/nothing", "Tests/1", &reads, 404, "not_found"),
        ("/v1/offers", "Tests/1", &writes, 403, "insufficient_scope"),
        ("/v1/offers", "Tests/1", &reads, 400, "validation_error"),
        (&one, "Tests/1", &reads, 400, "validation_error"),
    ] {
        let request = world.at("GET", path).bearer(token).without("user-agent");
        let request = request.header("user-agent", agent).body("x".repeat(65 * 1024));
        request.send().await.refused(status, code);
    }
}
