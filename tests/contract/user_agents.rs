//! The User-Agent rule: valid values, and that it is checked first.

use blackbox::{Expect, Wire, request};

use crate::world;

#[tokio::test]
async fn the_pattern_is_matched_from_the_start_without_an_end_anchor_before_the_token() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let ask = async |agent: &str| {
        let request = world.at("GET", "/v1/me").bearer(&token).without("user-agent");
        request.header("user-agent", agent).send().await
    };
    let (b63, zeros) = ("b".repeat(63), "0".repeat(31));
    let fine = format!(
        "a/1|App/1.0|My-App_2.x/2024.11-rc_1 (+https://docs.example)|Mozilla/5.0 (X11; Linux x86_64)|\
        App/1.0;anything|App/1.0/2|9/9|a{b63}/1|App/1{zeros}|App/1{zeros}{zeros}00 and more"
    );
    for agent in fine.split('|') {
        assert_eq!(ask(agent).await.status, 200, "{agent}");
    }
    let bad = format!(
        "|App|App/|/1.0|App /1.0|App/ 1.0|-App/1.0|.App/1.0|_App/1.0|App/-1|App/.1|App+/1|(App/1.0)|a{b63}b/1"
    );
    for agent in bad.split('|') {
        let answer = ask(agent).await;
        assert_eq!(answer.status, 400, "{agent}");
        answer.refused(400, "missing_user_agent");
    }
    // Missing, repeated, or not ASCII; with any token.
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
