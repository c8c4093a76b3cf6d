//! `GET /oauth/authorize`: 60 requests a minute from one address.

use blackbox::Expect;
use testkit::Answer;

use crate::{instant, world};

#[tokio::test]
async fn an_address_has_60_requests_a_minute_over_all_processes_and_apart_from_tokens() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:15Z").await;
    let second = world.another().await;
    let owner = world.seller().await;
    let application = world.partner(&owner, &["offers:read"]).await;
    let proper = world.asking(&application, "offers:read").path();
    let ask =
        async |base: &str, path: &str| -> Answer { world.client.get(&format!("{base}{path}")).send().await };
    for n in 0..60 {
        let base = if n % 2 == 0 {
            &world.server.base_url
        } else {
            &second.base_url
        };
        let (path, status) = match n % 3 {
            0 => (proper.as_str(), 302),
            1 => ("/oauth/authorize", 400),
            _ => ("/oauth/authorize?client_id=psa_nobody", 400),
        };
        ask(base, path).await.expect(status);
    }
    for base in [&world.server.base_url, &second.base_url] {
        let limited = ask(base, &proper).await;
        limited.oauth_error(429, "rate_limited");
        assert_eq!(
            (limited.must("retry-after"), limited.header("location")),
            ("45", None)
        );
    }
    world.token_answer(&application).await.expect(200);
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    ask(&world.server.base_url, &proper).await.expect(302);
}
