//! The User-Agent rule: which ones pass, and that it is the first of all checks.

use blackbox::{Expect, Wire, request};

use crate::world;

#[tokio::test]
async fn the_pattern_is_matched_from_the_start_without_an_end_anchor() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let longest_name = format!("a{}/1", "b".repeat(63));
    let longest_version = format!("App/1{}", "0".repeat(31));
    let beyond_the_version = format!("App/1{} and more", "0".repeat(64));
    let fine = [
        "a/1",
        "App/1.0",
        "My-App_2.x/2024.11-rc_1 (+https://docs.example)",
        "Mozilla/5.0 (X11; Linux x86_64)",
        "App/1.0;anything",
        "App/1.0/2",
        "9/9",
        &longest_name,
        &longest_version,
        &beyond_the_version,
    ];
    for agent in fine {
        let request = world.client.get(&world.url("/v1/me")).bearer(&token);
        let answer = request
            .without("user-agent")
            .header("user-agent", agent)
            .send()
            .await;
        assert_eq!(answer.status, 200, "{agent}");
    }
    let name_too_long = format!("a{}/1", "b".repeat(64));
    let refused = [
        "",
        "App",
        "App/",
        "/1.0",
        "App /1.0",
        "App/ 1.0",
        "-App/1.0",
        ".App/1.0",
        "_App/1.0",
        "App/-1",
        "App/.1",
        "App+/1",
        "(App/1.0)",
        &name_too_long,
    ];
    for agent in refused {
        let request = world.client.get(&world.url("/v1/me")).bearer(&token);
        let answer = request
            .without("user-agent")
            .header("user-agent", agent)
            .send()
            .await;
        assert_eq!(answer.code(), "missing_user_agent", "{agent}");
        answer.refused(400, "missing_user_agent");
    }
}

#[tokio::test]
async fn absent_repeated_or_not_ascii_is_refused_before_the_token_is_looked_at() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let bearer = format!("Bearer {token}");
    let good = ("user-agent", "App/1.0");
    let cases: [&[(&str, &str)]; 4] = [
        &[],
        &[("authorization", &bearer)],
        &[("authorization", &bearer), good, good],
        &[("authorization", &bearer), ("user-agent", "Żaba/1.0")],
    ];
    for headers in cases {
        let answer = Wire::exchange(&world.server.base_url, request("GET", "/v1/me", headers)).await;
        answer.refused(400, "missing_user_agent");
    }
}
