//! Every response has `X-Trace-Id`; a valid `X-Request-Id` is used for it.

use blackbox::{Expect, Wire, World, request};

use crate::world;

/// Paths on both listeners with every kind of answer.
fn places(world: &World) -> Vec<String> {
    let public = "/v1/me /v1/nothing /oauth/token /oauth/nothing /nothing / /panel/sign-in /panel/nothing \
        /docs/guide/orders /openapi.json";
    let public = public.split(' ');
    let office = "/healthz /readyz /metrics /sellers /nothing".split(' ');
    let public = public.map(|path| world.url(path));
    let office = office.map(|path| format!("{}{path}", world.server.backoffice_url));
    public.chain(office).collect()
}

#[tokio::test]
async fn a_request_id_that_follows_the_rule_is_echoed_everywhere_and_any_other_ignored() {
    let world = world().await;
    let (longest, too_long) = ("x".repeat(64), "x".repeat(65));
    for url in places(&world) {
        let ask = |id: &str| world.client.get(&url).header("x-request-id", id);
        for id in ["12345678", "order-17:try.2_A", &longest] {
            assert_eq!(ask(id).send().await.must("x-trace-id"), id, "{url}");
        }
        let no_agent = ask("no-agent-1").without("user-agent").send().await;
        assert_eq!(no_agent.must("x-trace-id"), "no-agent-1", "{url}");
        let mut seen = vec![world.client.get(&url).send().await.must("x-trace-id").to_owned()];
        for id in [
            "",
            "1234567",
            &too_long,
            "with space",
            "semi;colon",
            "sl/ash/es",
            "przecię",
        ] {
            let made = ask(id).send().await.must("x-trace-id").to_owned();
            assert_ne!(made, id, "{url}");
            assert!((8..=64).contains(&made.len()), "{made}");
            assert!(!seen.contains(&made), "{url}: {made} was made twice");
            seen.push(made);
        }
    }
    // Two headers count as none.
    let headers = [
        ("user-agent", "App/1.0"),
        ("x-request-id", "first-one"),
        ("x-request-id", "second-one"),
    ];
    let answer = Wire::exchange(&world.server.base_url, request("GET", "/v1/me", &headers)).await;
    let made = answer.must("x-trace-id");
    assert!(made != "first-one" && made != "second-one", "{made}");
}
