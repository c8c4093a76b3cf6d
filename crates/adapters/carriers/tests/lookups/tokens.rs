//! Tokens: one request for everybody, renewed in time, replaced once when refused.

use std::time::Duration;

use adapter_carriers::DEADLINE;
use futures_util::future::join_all;
use orders::{Carrier, Lookup};
use serde_json::json;

use crate::{
    fixtures::{self, token_for},
    stub::Reply,
    world::{self, CARRIERS, WITH_TOKENS, World, reason, until},
};

async fn each(check: impl AsyncFn(&World)) {
    world::each(&WITH_TOKENS, DEADLINE, check).await;
}

fn token_of(world: &World, n: usize) -> String {
    let header = if world.carrier == Carrier::PocztaPolska {
        "api_key"
    } else {
        "authorization"
    };
    world.stub.asked()[n].headers[header]
        .trim_start_matches("Bearer ")
        .to_owned()
}

#[tokio::test]
async fn one_token_serves_everybody() {
    each(async |world| {
        let carrier = world.carrier;
        let lookups = join_all((0..10).map(|_| world.ask())).await;
        assert!(
            lookups.iter().all(|lookup| matches!(lookup, Lookup::Found(_))),
            "{carrier:?}"
        );
        assert_eq!((world.asked(), world.token_requests()), (10, 1), "{carrier:?}");
    })
    .await;
}

#[tokio::test]
async fn a_failed_request_for_a_token_is_everybodys_who_waited() {
    each(async |world| {
        let carrier = world.carrier;
        world
            .stub
            .gives([Reply::new(500, ""), fixtures::token(carrier, 1)]);
        let lookups = join_all((0..4).map(|_| world.ask())).await;
        assert!(
            lookups
                .into_iter()
                .all(|lookup| reason(lookup) == "HTTP status 500"),
            "{carrier:?}"
        );
        assert_eq!((world.asked(), world.token_requests()), (0, 1), "{carrier:?}");
        assert!(matches!(world.ask().await, Lookup::Found(_)), "{carrier:?}");
    })
    .await;
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    each(async |world| {
        let carrier = world.carrier;
        world.ask().await;
        world
            .stub
            .says([Reply::new(401, "{}"), fixtures::delivered(carrier)]);
        assert!(matches!(world.ask().await, Lookup::Found(_)), "{carrier:?}");
        assert_eq!((world.asked(), world.token_requests()), (3, 2), "{carrier:?}");
        assert_eq!(
            [1, 2].map(|n| token_of(world, n)),
            ["access3token-1", "access3token-2"]
        );
    })
    .await;
}

#[tokio::test]
async fn everybody_whose_token_was_refused_gets_the_same_new_one() {
    each(async |world| {
        let carrier = world.carrier;
        world.ask().await;
        let refused = [(); 4].map(|()| Reply::new(401, "{}"));
        world
            .stub
            .says(refused.into_iter().chain([fixtures::delivered(carrier)]));
        world.stub.hold();
        let opening = async {
            until(|| world.asked() == 5).await;
            world.stub.open();
        };
        let (lookups, ()) = tokio::join!(join_all((0..4).map(|_| world.ask())), opening);
        assert!(
            lookups.iter().all(|lookup| matches!(lookup, Lookup::Found(_))),
            "{carrier:?}"
        );
        assert_eq!(world.token_requests(), 2, "{carrier:?}");
    })
    .await;
}

#[tokio::test]
async fn a_second_401_ends_the_asking_until_the_next_start() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let carrier = world.carrier;
        let expected = if WITH_TOKENS.contains(&carrier) {
            (2, 2)
        } else {
            (1, 0)
        };
        assert_eq!(
            reason(world.hears(Reply::new(401, "{}")).await),
            "the carrier refuses the credentials"
        );
        assert_eq!((world.asked(), world.token_requests()), expected, "{carrier:?}");
        world.stub.says([fixtures::delivered(carrier)]);
        world.clock.forward(30 * 86_400);
        assert!(reason(world.ask().await).starts_with("not asked"), "{carrier:?}");
        assert_eq!((world.asked(), world.token_requests()), expected, "{carrier:?}");
    })
    .await;
}

#[tokio::test]
async fn refused_credentials_end_the_asking_until_the_next_start() {
    for carrier in WITH_TOKENS {
        let refusals = match carrier {
            Carrier::PocztaPolska => [401, 403, 405].map(|status| Reply::new(status, "")).to_vec(),
            _ => ["invalid_client", "unauthorized_client", "invalid_grant"]
                .map(|error| Reply::new(400, json!({"error": error}).to_string()))
                .into_iter()
                .chain([Reply::new(401, "")])
                .collect(),
        };
        for refusal in refusals {
            let world = World::new(carrier).await;
            world.stub.gives([refusal, fixtures::token(carrier, 1)]);
            assert_eq!(
                reason(world.ask().await),
                "the carrier refuses the credentials",
                "{carrier:?}"
            );
            world.clock.forward(30 * 86_400);
            assert!(reason(world.ask().await).starts_with("not asked"), "{carrier:?}");
            assert_eq!((world.asked(), world.token_requests()), (0, 1), "{carrier:?}");
        }
    }
}

#[tokio::test]
async fn a_useless_answer_holds_no_token() {
    for carrier in WITH_TOKENS {
        let world = World::new(carrier).await;
        // One less than what opens the breaker.
        for body in [
            "",
            "<html>Maintenance</html>",
            r#"{"access_token":""}"#,
            "two \u{17c}",
        ] {
            world.stub.gives([Reply::new(200, body)]);
            assert_eq!(
                reason(world.ask().await),
                "unreadable answer: no token",
                "{carrier:?} {body}"
            );
            assert_eq!(world.asked(), 0);
        }
    }
}

#[tokio::test]
async fn a_token_is_renewed_five_minutes_before_its_end_and_nobody_waits() {
    for carrier in [Carrier::Gls, Carrier::Ups, Carrier::Fedex] {
        let world = World::new(carrier).await;
        world.ask().await;
        world.clock.forward(3_300 - 1);
        world.ask().await;
        assert_eq!(world.token_requests(), 1, "{carrier:?}");
        world.clock.forward(1);
        world.ask().await;
        assert_eq!(token_of(&world, 2), "access3token-1");
        until(|| world.token_requests() == 2).await;
        // The stub has seen the request; the answer is on its way.
        for n in 3.. {
            world.ask().await;
            if token_of(&world, n) == "access3token-2" {
                break;
            }
            assert!(n < 1_000, "{carrier:?}: the new token is never used");
        }
        assert_eq!(world.token_requests(), 2, "{carrier:?}");
    }
}

#[tokio::test]
async fn a_token_of_short_life_is_renewed_at_half_of_it() {
    let world = World::new(Carrier::Gls).await;
    world.stub.gives([token_for(1, 60), token_for(2, 60)]);
    for seconds in [0, 29] {
        world.clock.forward(seconds);
        world.ask().await;
        assert_eq!(world.token_requests(), 1);
    }
    world.clock.forward(1);
    world.ask().await;
    until(|| world.token_requests() == 2).await;
}

#[tokio::test]
async fn silence_instead_of_a_token_is_the_carriers_silence() {
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
        assert!(
            reason(world.ask().await).starts_with("not asked"),
            "{:?}",
            world.carrier
        );
        assert_eq!(world.asked(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_gateway_in_trouble_is_asked_for_a_token_once_more() {
    each(async |world| {
        world
            .stub
            .gives([Reply::new(503, ""), fixtures::token(world.carrier, 1)]);
        assert!(
            matches!(world.ask().await, Lookup::Found(_)),
            "{:?}",
            world.carrier
        );
        assert_eq!((world.asked(), world.token_requests()), (1, 2));
    })
    .await;
}

#[tokio::test]
async fn a_renewal_that_fails_is_tried_again_later_and_the_end_is_the_end() {
    let world = World::new(Carrier::Gls).await;
    world
        .stub
        .gives([token_for(1, 3_600), Reply::new(500, ""), token_for(2, 3_600)]);
    world.ask().await;
    world.clock.forward(3_300);
    world.ask().await;
    until(|| world.token_requests() == 2).await;
    for _ in 0..5 {
        assert!(matches!(world.ask().await, Lookup::Found(_)));
    }
    assert_eq!(world.token_requests(), 2);
    world.clock.forward(300);
    assert!(matches!(world.ask().await, Lookup::Found(_)));
    assert_eq!(world.token_requests(), 3);
    assert_eq!(token_of(&world, world.asked() - 1), "access3token-2");
}

#[tokio::test]
async fn ups_counts_a_tokens_life_from_its_issue() {
    let world = World::new(Carrier::Ups).await;
    // Issued half an hour before the clock's 22:00, good for an hour, and written as text.
    let issued = crate::world::at("2026-01-06T21:30:00Z")
        .timestamp_millis()
        .to_string();
    let token = json!({"access_token": "old", "issued_at": issued, "expires_in": "3600"}).to_string();
    world
        .stub
        .gives([Reply::new(200, token), fixtures::token(Carrier::Ups, 2)]);
    world.ask().await;
    world.clock.forward(1_799);
    world.ask().await;
    assert_eq!(token_of(&world, 1), "old");
    world.clock.forward(3_600);
    world.ask().await;
    assert_eq!(token_of(&world, 2), "access3token-2");
}

#[tokio::test]
async fn a_token_without_a_stated_end_serves_until_it_is_refused() {
    let world = World::new(Carrier::PocztaPolska).await;
    for _ in 0..3 {
        world.ask().await;
        world.clock.forward(86_400);
    }
    assert_eq!(world.token_requests(), 1);
}
