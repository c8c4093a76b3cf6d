//! The query of `GET /v1/offers`: what is refused, and how.

use blackbox::Expect;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn everything_wrong_is_reported_together_in_the_contracts_order() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let all = "/v1/offers?zzz=1&updated_after=x&status=sold&fields=nothing&after=x&limit=ten";
    world
        .get(&token, all)
        .await
        .invalid(&["limit", "after", "fields", "status", "updated_after", "zzz"]);
    world
        .get(&token, "/v1/offers?status=sold&limit=5&page=2")
        .await
        .invalid(&["status", "page"]);
}

#[tokio::test]
async fn unknown_and_repeated_parameters_are_named() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for (query, path) in [
        ("page=1", "page"),
        ("Limit=1", "Limit"),
        ("limit%20=1", "limit "),
        ("placed_after=2040-01-01T12:00:00Z", "placed_after"),
        ("limit=1&limit=1", "limit"),
        ("status=draft&status=published", "status"),
        ("fields=id&fields=id", "fields"),
        ("after=&after=", "after"),
    ] {
        let answer = world.get(&token, &format!("/v1/offers?{query}")).await;
        assert_eq!(
            answer.errors().first().unwrap().1.as_deref(),
            Some(path),
            "{query}"
        );
        answer.refused(400, "validation_error");
    }
    world.get(&token, "/v1/offers?").await.expect(200);
    world.get(&token, "/v1/offers?%6Cimit=1").await.expect(200);
}

#[tokio::test]
async fn at_most_20_entries_are_reported() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let query: Vec<_> = (0..25).map(|n| format!("x{n}=1")).collect();
    let answer = world
        .get(&token, &format!("/v1/offers?limit=x&{}", query.join("&")))
        .await
        .expect(400);
    let errors = answer.errors();
    assert_eq!(errors.len(), 20);
    assert_eq!(errors[0].1.as_deref(), Some("limit"));
}

#[tokio::test]
async fn limit_is_any_integer_and_clamped() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let lines: Vec<_> = (1..=201).map(|n| blackbox::offer_line(n, json!({}))).collect();
    world.import(&seller, lines.join("\n")).await.expect(200);
    let huge = "9".repeat(100);
    let tiny = format!("-{huge}");
    for (limit, items) in [
        ("", 50),
        ("limit=1", 1),
        ("limit=0", 1),
        ("limit=-0", 1),
        ("limit=-1", 1),
        ("limit=-9223372036854775809", 1),
        ("limit=007", 7),
        ("limit=199", 199),
        ("limit=200", 200),
        ("limit=201", 200),
        ("limit=65537", 200),
        ("limit=4294967297", 200),
        ("limit=18446744073709551617", 200),
        (&format!("limit={huge}"), 200),
        (&format!("limit={tiny}"), 1),
    ] {
        let list = world.get(&token, &format!("/v1/offers?fields=id&{limit}")).await;
        let list = if limit.is_empty() {
            world.get(&token, "/v1/offers").await
        } else {
            list
        };
        assert_eq!(
            list.expect(200).json()["items"].as_array().unwrap().len(),
            items,
            "{limit}"
        );
    }
    for bad in [
        "", "abc", "1.5", "1.0", "%2B5", "+5", "5%20", "0x5", "1e2", "-", "--5", "%D9%A1", "5,5", "null",
    ] {
        let answer = world.get(&token, &format!("/v1/offers?limit={bad}")).await;
        assert_eq!(answer.status, 400, "{bad}");
        answer.invalid(&["limit"]);
    }
}

#[tokio::test]
async fn status_is_one_of_four_words() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for bad in ["", "sold", "Draft", "draft,published", "draft%20", "%64raft%00"] {
        let answer = world.get(&token, &format!("/v1/offers?status={bad}")).await;
        assert_eq!(answer.status, 400, "{bad}");
        answer.invalid(&["status"]);
    }
}

#[tokio::test]
async fn a_query_that_is_no_utf_8_or_breaks_its_encoding_is_refused() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let bearer = format!("Bearer {token}");
    let headers = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    for query in [
        "status=%ff",
        "status=%",
        "status=%zz",
        "after=%00",
        "%ff=1",
        "limit=5%",
    ] {
        let bytes = blackbox::request("GET", &format!("/v1/offers?{query}"), &headers);
        blackbox::Wire::exchange(&world.server.base_url, bytes)
            .await
            .refused(400, "validation_error");
    }
}

#[tokio::test]
async fn an_idempotency_key_on_get_is_ignored() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let request = world.client.get(&world.url("/v1/offers")).bearer(&token);
    let answer = request
        .header("idempotency-key", &"k".repeat(129))
        .header("idempotency-key", "")
        .send()
        .await;
    answer.expect(200);
}
