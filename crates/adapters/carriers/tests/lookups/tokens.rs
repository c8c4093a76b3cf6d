//! Tokens: one request for all look-ups, renewed before expiry, replaced once if rejected.

use std::time::Duration;

use adapter_carriers::DEADLINE;
use futures_util::future::join_all;
use orders::Carrier;
use serde_json::json;

use crate::{
    fixtures::{self, token_for},
    stub::Reply,
    world::{self, CARRIERS, WITH_TOKENS, World, found, reason, until},
};

const CREDENTIALS: &str = "the carrier refuses the credentials";

async fn each(check: impl AsyncFn(&World)) {
    world::each(&WITH_TOKENS, DEADLINE, check).await;
}

fn token_of(world: &World, n: usize) -> String {
    let header = match world.carrier {
        Carrier::PocztaPolska => "api_key",
        _ => "authorization",
    };
    let value = &world.stub.asked()[n].headers[header];
    value.trim_start_matches("Bearer ").to_owned()
}

async fn all_find(world: &World, count: usize) {
    let lookups = join_all((0..count).map(|_| world.ask())).await;
    for lookup in lookups {
        found(lookup);
    }
}

#[tokio::test]
async fn one_token_serves_all_look_ups() {
    each(async |world| {
        all_find(world, 10).await;
        assert_eq!(world.requests(), (10, 1), "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn a_failed_token_request_fails_all_look_ups_that_waited() {
    each(async |world| {
        world
            .stub
            .gives([Reply::new(500, ""), fixtures::token(world.carrier, 1)]);
        for lookup in join_all((0..4).map(|_| world.ask())).await {
            assert_eq!(reason(lookup), "HTTP status 500", "{:?}", world.carrier);
        }
        assert_eq!(world.requests(), (0, 1), "{:?}", world.carrier);
        found(world.ask().await);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_token_is_replaced_once_for_all_look_ups() {
    each(async |world| {
        found(world.ask().await);
        let rejected = [(); 4].map(|()| Reply::new(401, "{}"));
        let replies = rejected.into_iter().chain([fixtures::delivered(world.carrier)]);
        world.stub.says(replies);
        world.stub.hold();
        let opening = async {
            until(|| world.asked() == 5).await;
            world.stub.open();
        };
        tokio::join!(all_find(world, 4), opening);
        assert_eq!(world.requests(), (9, 2), "{:?}", world.carrier);
        assert_eq!(
            [1, 5].map(|n| token_of(world, n)),
            ["access3token-1", "access3token-2"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_second_401_ends_the_asking_until_the_next_start() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let has_token = WITH_TOKENS.contains(&world.carrier);
        let expected = if has_token { (2, 2) } else { (1, 0) };
        assert_eq!(world.fails(Reply::new(401, "{}")).await, CREDENTIALS);
        assert_eq!(world.requests(), expected, "{:?}", world.carrier);
        world.stub.says([fixtures::delivered(world.carrier)]);
        world.clock.forward(30 * 86_400);
        assert!(reason(world.ask().await).starts_with("not asked"));
        assert_eq!(world.requests(), expected, "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn rejected_credentials_end_the_asking_until_the_next_start() {
    for carrier in WITH_TOKENS {
        let oauth = ["invalid_client", "unauthorized_client", "invalid_grant"]
            .map(|error| Reply::new(400, json!({"error": error}).to_string()));
        let rejections = match carrier {
            Carrier::PocztaPolska => [403, 405].map(|status| Reply::new(status, "")).to_vec(),
            _ => oauth.to_vec(),
        };
        for rejection in rejections.into_iter().chain([Reply::new(401, "")]) {
            let world = World::new(carrier).await;
            world.stub.gives([rejection, fixtures::token(carrier, 1)]);
            assert_eq!(reason(world.ask().await), CREDENTIALS, "{carrier:?}");
            world.clock.forward(30 * 86_400);
            assert!(reason(world.ask().await).starts_with("not asked"));
            assert_eq!(world.requests(), (0, 1), "{carrier:?}");
        }
    }
}

#[tokio::test]
async fn an_unreadable_token_answer_is_a_failure() {
    for carrier in WITH_TOKENS {
        let world = World::new(carrier).await;
        // One failure fewer than would open the breaker.
        for body in [
            "",
            "<html>Maintenance</html>",
            r#"{"access_token":""}"#,
            "two \u{17c}",
        ] {
            world.stub.gives([Reply::new(200, body)]);
            let reason = reason(world.ask().await);
            assert_eq!(reason, "unreadable answer: no token", "{carrier:?} {body}");
            assert_eq!(world.asked(), 0);
        }
    }
}

#[tokio::test]
async fn a_token_is_renewed_five_minutes_before_its_expiry_and_nobody_waits() {
    for carrier in [Carrier::Gls, Carrier::Ups, Carrier::Fedex] {
        let world = World::new(carrier).await;
        world.ask().await;
        world.clock.forward(3_300 - 1);
        world.ask().await;
        assert_eq!(world.requests(), (2, 1), "{carrier:?}");
        world.clock.forward(1);
        world.ask().await;
        assert_eq!(token_of(&world, 2), "access3token-1");
        until(|| world.requests().1 == 2).await;
        // The stub has got the request; its answer is still in transit.
        for n in 3.. {
            world.ask().await;
            if token_of(&world, n) == "access3token-2" {
                break;
            }
            assert!(n < 1_000, "{carrier:?}: the new token is never used");
        }
        assert_eq!(world.requests().1, 2, "{carrier:?}");
    }
}

#[tokio::test]
async fn a_short_lived_token_is_renewed_at_half_of_its_life() {
    let world = World::new(Carrier::Gls).await;
    world.stub.gives([token_for(1, 60), token_for(2, 60)]);
    for seconds in [0, 29] {
        world.clock.forward(seconds);
        world.ask().await;
        assert_eq!(world.requests().1, 1);
    }
    world.clock.forward(1);
    world.ask().await;
    until(|| world.requests().1 == 2).await;
}

#[tokio::test]
async fn a_failed_renewal_is_tried_again_later_and_an_expired_token_is_not_used() {
    let world = World::new(Carrier::Gls).await;
    world
        .stub
        .gives([token_for(1, 3_600), Reply::new(500, ""), token_for(2, 3_600)]);
    world.ask().await;
    world.clock.forward(3_300);
    world.ask().await;
    until(|| world.requests().1 == 2).await;
    for _ in 0..5 {
        found(world.ask().await);
    }
    assert_eq!(world.requests().1, 2);
    world.clock.forward(300);
    found(world.ask().await);
    assert_eq!(world.requests().1, 3);
    assert_eq!(token_of(&world, world.asked() - 1), "access3token-2");
}

#[tokio::test]
async fn token_requests_have_the_deadline_and_the_retry_of_look_ups() {
    each(async |world| {
        let carrier = world.carrier;
        world
            .stub
            .gives([Reply::new(503, ""), fixtures::token(carrier, 1)]);
        found(world.ask().await);
        assert_eq!(world.requests(), (1, 2), "{carrier:?}");
    })
    .await;
    world::each(&WITH_TOKENS, Duration::from_millis(400), async |world| {
        world.stub.gives([Reply::Silence]);
        for _ in 0..3 {
            assert_eq!(
                reason(world.ask().await),
                "no answer in time",
                "{:?}",
                world.carrier
            );
        }
        assert!(reason(world.ask().await).starts_with("not asked"));
        assert_eq!(world.asked(), 0);
    })
    .await;
}

#[tokio::test]
async fn the_life_of_a_ups_token_counts_from_its_issue() {
    let world = World::new(Carrier::Ups).await;
    // Issued half an hour before the clock's 22:00, valid for an hour, with the number as text.
    let issued = world::at("2026-01-06T21:30:00Z").timestamp_millis().to_string();
    let token = json!({"access_token": "old", "issued_at": issued, "expires_in": "3600"});
    world.stub.gives([
        Reply::new(200, token.to_string()),
        fixtures::token(Carrier::Ups, 2),
    ]);
    world.ask().await;
    world.clock.forward(1_799);
    world.ask().await;
    assert_eq!(token_of(&world, 1), "old");
    world.clock.forward(3_600);
    world.ask().await;
    assert_eq!(token_of(&world, 2), "access3token-2");
}

#[tokio::test]
async fn a_token_without_a_sensible_expiry_is_used_until_it_is_rejected() {
    let odd = json!({"access_token": "t", "expires_in": i64::MAX, "issued_at": i64::MIN.to_string()});
    for (carrier, token) in [
        (Carrier::PocztaPolska, fixtures::token(Carrier::PocztaPolska, 1)),
        (Carrier::Ups, Reply::new(200, odd.to_string())),
    ] {
        let world = World::new(carrier).await;
        world.stub.gives([token]);
        for _ in 0..3 {
            found(world.ask().await);
            world.clock.forward(86_400);
        }
        assert_eq!(world.requests().1, 1, "{carrier:?}");
    }
}
