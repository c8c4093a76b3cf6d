//! Tokens: one request for all look-ups, renewed before expiry, replaced once if rejected.

use std::time::Duration;

use adapter_carriers::DEADLINE;
use futures_util::future::join_all;
use orders::Carrier;
use serde_json::json;

use crate::fixtures::{token, token_for};
use crate::world::{CARRIERS, Reply, SILENCE, WITH_TOKENS, World, reply, until};
use crate::{fixtures, world};

const CREDENTIALS: &str = "the carrier rejects the credentials";

async fn each(check: impl AsyncFn(&World)) {
    world::each(&WITH_TOKENS, DEADLINE, check).await;
}

/// The token of the `n`th tracking request.
fn token_of(world: &World, n: usize) -> String {
    let header = match world.carrier {
        Carrier::PocztaPolska => "api_key",
        _ => "authorization",
    };
    let value = world.requests()[n].header(header).to_owned();
    value.trim_start_matches("Bearer ").to_owned()
}

/// Asserts that no look-up sends a request any more.
async fn is_disabled(world: &World) {
    let before = world.counts();
    world.replies([fixtures::delivered(world.carrier)]);
    world.clock.advance(30 * 86_400);
    assert!(world.fails().await.starts_with("not asked"));
    assert_eq!(world.counts(), before, "{:?}", world.carrier);
}

#[tokio::test]
async fn one_token_request_serves_all_look_ups_and_its_failure_fails_them() {
    each(async |world| {
        world.token_replies([reply(500, ""), token(world.carrier, 1)]);
        for reason in join_all((0..4).map(|_| world.fails())).await {
            assert_eq!(reason, "HTTP status 500", "{:?}", world.carrier);
        }
        assert_eq!(world.counts(), (0, 1), "{:?}", world.carrier);
        join_all((0..10).map(|_| world.finds())).await;
        assert_eq!(world.counts(), (10, 2), "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_token_is_replaced_once_for_all_look_ups() {
    each(async |world| {
        world.finds().await;
        let rejected = [(); 4].map(|()| reply(401, "{}"));
        world.replies(rejected.into_iter().chain([fixtures::delivered(world.carrier)]));
        world.pause();
        let resuming = async {
            until(|| world.count() == 5).await;
            world.resume();
        };
        tokio::join!(join_all((0..4).map(|_| world.finds())), resuming);
        assert_eq!(world.counts(), (9, 2), "{:?}", world.carrier);
        let tokens = [1, 5].map(|n| token_of(world, n));
        assert_eq!(tokens, ["access3token-1", "access3token-2"]);
    })
    .await;
}

#[tokio::test]
async fn a_second_401_ends_the_queries_until_the_next_start() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let has_token = WITH_TOKENS.contains(&world.carrier);
        assert_eq!(world.fails_with(reply(401, "{}")).await, CREDENTIALS);
        let expected = if has_token { (2, 2) } else { (1, 0) };
        assert_eq!(world.counts(), expected, "{:?}", world.carrier);
        is_disabled(world).await;
    })
    .await;
}

#[tokio::test]
async fn rejected_credentials_end_the_queries_until_the_next_start() {
    for carrier in WITH_TOKENS {
        let rejections = match carrier {
            Carrier::PocztaPolska => vec![reply(403, ""), reply(405, ""), reply(401, "")],
            _ => ["invalid_client", "unauthorized_client", "invalid_grant"]
                .map(|error| reply(400, json!({"error": error}).to_string()))
                .into_iter()
                .chain([reply(401, "")])
                .collect(),
        };
        for rejection in rejections {
            let world = World::new(carrier).await;
            world.token_replies([rejection]);
            assert_eq!(world.fails().await, CREDENTIALS, "{carrier:?}");
            assert_eq!(world.counts(), (0, 1), "{carrier:?}");
            is_disabled(&world).await;
        }
    }
}

#[tokio::test]
async fn an_unreadable_token_answer_is_a_failure() {
    each(async |world| {
        // One failure fewer than would open the breaker.
        for body in [
            "",
            "<html>Maintenance</html>",
            r#"{"access_token":""}"#,
            "two \u{17c}",
        ] {
            world.token_replies([reply(200, body)]);
            let reason = world.fails().await;
            assert_eq!(
                reason, "unreadable answer: no token",
                "{:?} {body}",
                world.carrier
            );
        }
        assert_eq!(world.count(), 0);
    })
    .await;
}

/// A UPS token that was issued half an hour before the clock's 22:00, with its lifetime as text.
fn issued_earlier() -> Reply {
    let body = json!({"access_token": "access3token-1", "issued_at": "1767735000000", "expires_in": "3600"});
    reply(200, body.to_string())
}

#[tokio::test]
async fn a_token_is_renewed_in_the_background_before_its_expiry() {
    for (carrier, first, renewed_after) in [
        (Carrier::Gls, token(Carrier::Gls, 1), 3_300),
        (Carrier::Ups, token(Carrier::Ups, 1), 3_300),
        (Carrier::Fedex, token(Carrier::Fedex, 1), 3_300),
        // A token that lives less than ten minutes is renewed at half its life.
        (Carrier::Gls, token_for(1, 60), 30),
        (Carrier::Ups, issued_earlier(), 1_500),
    ] {
        let world = World::new(carrier).await;
        world.token_replies([first, token(carrier, 2)]);
        world.finds().await;
        world.clock.advance(renewed_after - 1);
        world.finds().await;
        assert_eq!(world.counts(), (2, 1), "{carrier:?}");
        world.clock.advance(1);
        world.finds().await;
        assert_eq!(token_of(&world, 2), "access3token-1");
        until(|| world.counts().1 == 2).await;
        // The stub has got the request; its answer is still in transit.
        for n in 3.. {
            world.finds().await;
            if token_of(&world, n) == "access3token-2" {
                break;
            }
            assert!(n < 1_000, "{carrier:?}: the new token is never used");
        }
        assert_eq!(world.counts().1, 2, "{carrier:?}");
    }
}

#[tokio::test]
async fn a_failed_renewal_is_tried_again_later_and_an_expired_token_is_not_used() {
    let world = World::new(Carrier::Gls).await;
    world.token_replies([token_for(1, 3_600), reply(500, ""), token_for(2, 3_600)]);
    world.finds().await;
    world.clock.advance(3_300);
    world.finds().await;
    until(|| world.counts().1 == 2).await;
    for _ in 0..5 {
        world.finds().await;
    }
    assert_eq!(world.counts().1, 2);
    world.clock.advance(300);
    world.finds().await;
    assert_eq!(world.counts().1, 3);
    assert_eq!(token_of(&world, world.count() - 1), "access3token-2");
}

#[tokio::test]
async fn token_requests_have_the_deadline_and_the_retry_of_look_ups() {
    each(async |world| {
        world.token_replies([reply(503, ""), token(world.carrier, 1)]);
        world.finds().await;
        assert_eq!(world.counts(), (1, 2), "{:?}", world.carrier);
    })
    .await;
    world::each(&WITH_TOKENS, Duration::from_millis(400), async |world| {
        world.token_replies([SILENCE]);
        for _ in 0..3 {
            assert_eq!(world.fails().await, "no answer in time", "{:?}", world.carrier);
        }
        assert!(world.fails().await.starts_with("not asked"));
        assert_eq!(world.count(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_token_without_a_sensible_expiry_is_used_until_it_is_rejected() {
    let odd = json!({"access_token": "t", "expires_in": i64::MAX, "issued_at": i64::MIN.to_string()});
    for (carrier, token) in [
        (Carrier::PocztaPolska, token(Carrier::PocztaPolska, 1)),
        (Carrier::Ups, reply(200, odd.to_string())),
    ] {
        let world = World::new(carrier).await;
        world.token_replies([token]);
        for _ in 0..3 {
            world.finds().await;
            world.clock.advance(86_400);
        }
        assert_eq!(world.counts().1, 1, "{carrier:?}");
    }
}
