//! `POST /oauth/token`: 30 requests a minute from one address, 60 authenticated ones of one client.

use blackbox::{Expect, World};
use chrono::TimeDelta;
use testkit::{Answer, ServerOptions, TestClock};

use crate::{
    PROGRAM, instant,
    token_endpoint::{asking, form, proper},
    world,
};

async fn frozen(world: &World) -> TestClock {
    world.stop_clock("2040-01-01T12:00:30.25Z").await
}

/// A world that believes `X-Forwarded-For`, since its peer is a trusted proxy.
async fn behind_a_proxy(proxies: &str) -> World {
    World::with(PROGRAM, |options| {
        options.set("SELLER_API__SERVER__TRUSTED_PROXIES", proxies)
    })
    .await
}

async fn form_from(world: &World, address: &str, body: &str) -> Answer {
    asking(world)
        .header("x-forwarded-for", address)
        .form(body)
        .send()
        .await
}

fn is_limited(answer: &Answer) {
    answer.oauth_error(429, "rate_limited");
    assert_eq!(answer.must("retry-after"), "30");
}

#[tokio::test]
async fn an_address_has_30_requests_a_minute_over_all_processes_whatever_they_are() {
    let world = world().await;
    let clock = frozen(&world).await;
    let second = world.another().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    for n in 0..30 {
        let body = match n % 3 {
            0 => proper(&application),
            1 => "grant_type=password".to_owned(),
            _ => "grant_type=client_credentials&client_id=nobody&client_secret=x".to_owned(),
        };
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        let answer = world
            .client
            .post(&format!("{base}/oauth/token"))
            .form(&body)
            .send()
            .await;
        assert_ne!(answer.status, 429, "request {}", n + 1);
    }
    is_limited(&form(&world, &proper(&application)).await);
    is_limited(
        &asking(&world)
            .header("content-type", "text/plain")
            .body("x")
            .send()
            .await,
    );
    is_limited(
        &world
            .client
            .post(&format!("{}/oauth/token", second.base_url))
            .send()
            .await,
    );
    clock.freeze(instant("2040-01-01T12:00:59.999999Z")).await;
    assert_eq!(
        form(&world, &proper(&application))
            .await
            .expect(429)
            .must("retry-after"),
        "1"
    );
    clock.advance(TimeDelta::milliseconds(1)).await;
    form(&world, &proper(&application)).await.expect(200);
}

#[tokio::test]
async fn the_address_comes_from_a_trusted_proxy_alone() {
    let world = world().await;
    frozen(&world).await;
    for n in 0..30 {
        form_from(&world, &format!("203.0.113.{n}"), "grant_type=password")
            .await
            .expect(400);
    }
    is_limited(&form_from(&world, "198.51.100.1", "grant_type=password").await);
    let forwarded = asking(&world)
        .header("forwarded", "for=198.51.100.1")
        .form("grant_type=password");
    is_limited(&forwarded.send().await);

    let world = behind_a_proxy("192.0.2.0/24,127.0.0.1").await;
    frozen(&world).await;
    for _ in 0..30 {
        form_from(&world, "203.0.113.7", "grant_type=password")
            .await
            .expect(400);
    }
    is_limited(&form_from(&world, "203.0.113.7", "grant_type=password").await);
    form_from(&world, "203.0.113.8", "grant_type=password")
        .await
        .expect(400);
    // What a client writes into the header itself stands to the left of what the proxy adds.
    is_limited(&form_from(&world, "198.51.100.1, 203.0.113.7", "grant_type=password").await);
    is_limited(&form_from(&world, "203.0.113.7, 192.0.2.9", "grant_type=password").await);
}

#[tokio::test]
async fn an_ipv6_network_of_64_bits_is_one_address() {
    let world = behind_a_proxy("127.0.0.0/8").await;
    frozen(&world).await;
    for n in 0..30 {
        let address = format!("2001:db8:1:2:{n:x}::1");
        form_from(&world, &address, "grant_type=password")
            .await
            .expect(400);
    }
    is_limited(&form_from(&world, "2001:db8:1:2:ffff::", "grant_type=password").await);
    form_from(&world, "2001:db8:1:3::1", "grant_type=password")
        .await
        .expect(400);
}

#[tokio::test]
async fn a_client_has_60_authenticated_requests_a_minute_from_anywhere() {
    let world = behind_a_proxy("127.0.0.1").await;
    let clock = frozen(&world).await;
    let second = world.another().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let body = proper(&application);
    for n in 0..60 {
        // An authenticated request that fails counts too.
        let body = if n % 4 == 0 {
            format!("{body}&scope=nothing")
        } else {
            body.clone()
        };
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        let request = world.client.post(&format!("{base}/oauth/token")).form(&body);
        let answer = request
            .header("x-forwarded-for", &format!("203.0.113.{n}"))
            .send()
            .await;
        assert_ne!(answer.status, 429, "request {}", n + 1);
    }
    is_limited(&form_from(&world, "198.51.100.1", &body).await);
    is_limited(&form_from(&world, "198.51.100.2", &format!("{body}&scope=nothing")).await);
    let other = world.application(&seller, &["offers:read"]).await;
    form_from(&world, "198.51.100.3", &proper(&other))
        .await
        .expect(200);
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    form_from(&world, "198.51.100.1", &body).await.expect(200);
}

#[tokio::test]
async fn nobody_can_lock_a_client_out_by_failing_in_its_name() {
    let world = behind_a_proxy("127.0.0.1").await;
    frozen(&world).await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let wrong = format!(
        "grant_type=client_credentials&client_id={}&client_secret=pss_x",
        application.client_id
    );
    for n in 0..70 {
        form_from(&world, &format!("203.0.113.{n}"), &wrong)
            .await
            .expect(401);
    }
    form_from(&world, "198.51.100.1", &proper(&application))
        .await
        .expect(200);
}

#[tokio::test]
async fn the_limits_are_settings() {
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 5)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 2)
    })
    .await;
    frozen(&world).await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    for status in [200, 200, 429, 429, 429] {
        form(&world, &proper(&application)).await.expect(status);
    }
    is_limited(&form(&world, "grant_type=password").await);
}

#[tokio::test]
async fn a_client_over_its_limit_still_has_to_prove_who_it_is() {
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1)
    })
    .await;
    frozen(&world).await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    form(&world, &proper(&application)).await.expect(200);
    is_limited(&form(&world, &proper(&application)).await);
    form(&world, &(proper(&application) + "x"))
        .await
        .oauth_error(401, "invalid_client");
    form(
        &world,
        &proper(&application).replace("client_credentials", "password"),
    )
    .await
    .oauth_error(400, "unsupported_grant_type");
}

#[tokio::test]
async fn of_many_at_once_exactly_30_pass_over_two_processes() {
    let world = world().await;
    frozen(&world).await;
    let second = world.another().await;
    let asking = (0..80).map(|n| {
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        let request = world
            .client
            .post(&format!("{base}/oauth/token"))
            .form("grant_type=password");
        tokio::spawn(request.send())
    });
    let mut passed = 0;
    for asked in asking.collect::<Vec<_>>() {
        match asked.await.unwrap().status {
            400 => passed += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert_eq!(passed, 30);
}

#[tokio::test]
async fn a_proxy_that_nobody_trusts_is_warned_of_and_counted() {
    let world = World::with(PROGRAM, ServerOptions::in_one_process).await;
    for _ in 0..5 {
        form_from(&world, "203.0.113.7", "grant_type=password")
            .await
            .expect(400);
    }
    let warned = |log: &str| {
        log.lines()
            .filter(|line| line.contains("WARN") && line.contains("X-Forwarded-For"))
            .count()
    };
    let log = world.server.log_with(|log| warned(log) > 0).await;
    assert!(warned(&log) < 5, "not once for each request: {log}");
    let metrics = world
        .client
        .get(&format!("{}/metrics", world.server.backoffice_url))
        .send()
        .await;
    let text = String::from_utf8(metrics.bytes).unwrap();
    let counted = text
        .lines()
        .find(|line| !line.starts_with('#') && line.contains("untrusted_forwarding"));
    assert!(counted.is_some_and(|line| line.ends_with(" 5")), "{counted:?}");
}
