//! Importing NDJSON: counts, invalid lines, line endings.

use blackbox::{Expect, Seller, Wire, World, items, offer_body, offer_id, offer_line, once_each, text};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{world, world_with};

async fn import(world: &World, seller: &Seller, text: impl Into<Vec<u8>>) -> Value {
    world.import(seller, text).await.expect(200).json()
}

fn counts(report: &Value) -> [u64; 4] {
    ["created", "updated", "unchanged", "rejected_total"].map(|name| report[name].as_u64().unwrap())
}

/// The counts in the report of these lines.
async fn counted(world: &World, seller: &Seller, lines: &[String]) -> [u64; 4] {
    counts(&import(world, seller, lines.join("\n")).await)
}

/// Line numbers and paths of rejected lines; `-` for entries without a path.
fn rejected(report: &Value) -> Vec<(u64, String)> {
    let path = |entry: &Value| {
        assert_eq!(entry["code"], "validation_error");
        assert!(entry["message"].is_string());
        entry["path"].as_str().unwrap_or("-").to_owned()
    };
    let lines = report["rejected"].as_array().unwrap().iter();
    let rejected = lines.map(|line| {
        let errors = line["errors"].as_array().unwrap().iter();
        (
            line["line"].as_u64().unwrap(),
            errors.map(path).collect::<Vec<_>>().join(" "),
        )
    });
    rejected.collect()
}

/// More imports at once than there are connections.
#[tokio::test]
async fn many_imports_at_once_leave_connections_to_others_and_none_fails() {
    let world = world_with(&[("DATABASE__POOL_SIZE", "2")]).await;
    let other = world.seller().await;
    let mut imports = Vec::new();
    for n in 1..=24 {
        let path = format!("/sellers/{}/offers:import", world.seller().await.id);
        let import = world.office(Method::POST, &path);
        let import = import.header("content-type", "application/x-ndjson");
        let lines = (1..=5_000).map(|line| offer_line(n * 10_000 + line, json!({})) + "\n");
        imports.push(import.body(lines.collect::<String>()));
    }
    let beside = async {
        for n in 0..20 {
            let new = offer_body(n, json!({}));
            world.put(&other, &offer_id(n), &new).await.expect(201);
        }
    };
    let (answers, ()) = tokio::join!(once_each(imports), beside);
    for answer in answers {
        assert_eq!(counts(&answer.expect(200).json()), [5_000, 0, 0, 0]);
    }
}

#[tokio::test]
async fn lines_are_created_updated_or_left_alone() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let three = [1, 2, 3].map(|n| offer_line(n, json!({})));
    let report = import(&world, &seller, three.join("\n")).await;
    let expected = json!({"created": 3, "updated": 0, "unchanged": 0, "rejected_total": 0, "rejected": []});
    assert_eq!(report, expected);
    clock.advance(TimeDelta::seconds(1)).await;
    let mixed = [(2, json!({})), (3, json!({"stock": 1})), (4, json!({}))];
    let mixed = mixed.map(|(n, changes)| offer_line(n, changes));
    assert_eq!(counted(&world, &seller, &mixed).await, [1, 1, 1, 0]);
    let list = world.read(&token, "/v1/offers?fields=updated_at").await;
    let times = items(&list).iter().map(|offer| text(offer, "updated_at"));
    let (then, now) = ("2040-01-01T12:00:00.000000Z", "2040-01-01T12:00:01.000000Z");
    assert!(times.eq([now, now, then, then]), "{list}");
    assert_eq!(counted(&world, &seller, &mixed).await, [0, 0, 3, 0]);
    // The last of several lines of a new id counts.
    let again = ["one", "two", "two"].map(|title| offer_line(5, json!({"title": title})));
    assert_eq!(counted(&world, &seller, &again).await, [1, 1, 1, 0]);
    let kept = world.read(&token, &format!("/v1/offers/{}", offer_id(5))).await;
    assert_eq!(kept["title"], "two");
}

#[tokio::test]
async fn a_line_ends_in_lf_or_crlf_and_an_invalid_one_is_rejected_alone() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let [one, two, three] = [1, 2, 3].map(|n| offer_line(n, json!({})));
    // Lines may end in CRLF, and blank ones count as lines.
    let text = format!("\r\n{one}\r\n\n  \t \n{two}\nbad\r\n\n{three}");
    let report = import(&world, &seller, text).await;
    assert_eq!(counts(&report), [3, 0, 0, 1]);
    assert_eq!(rejected(&report), [(6, "-".to_owned())]);
    assert_eq!(items(&world.read(&token, "/v1/offers").await).len(), 3);
    for nothing in ["", "\n", "\r\n\r\n", "   "] {
        assert_eq!(counts(&import(&world, &seller, nothing).await), [0; 4]);
    }
    let with_end = format!("{one}\n");
    assert_eq!(counts(&import(&world, &seller, with_end).await), [0, 0, 1, 0]);
    // A line that is not UTF-8 or too long is rejected; the others are not.
    let no_text = [one.as_bytes(), b"\n{\"title\":\"\xff\"}\n", two.as_bytes()].concat();
    let endless = offer_line(1, json!({"title": "x".repeat(3 * 1024 * 1024)}));
    for (text, line) in [(no_text, 2), (format!("{endless}\n{two}").into_bytes(), 1)] {
        let report = import(&world, &seller, text).await;
        assert_eq!(counts(&report)[3], 1, "{report}");
        assert_eq!(rejected(&report)[0].0, line);
    }
    // An import needs its content type.
    let path = format!("/sellers/{}/offers:import", seller.id);
    let import_as = |kind: &str| {
        let request = world.office(Method::POST, &path).header("content-type", kind);
        request.body(one.clone())
    };
    for kind in ["application/x-ndjson", "application/x-ndjson; charset=utf-8"] {
        import_as(kind).send().await.expect(200);
    }
    import_as("text/csv").send().await.invalid("Content-Type");
    let compressed = import_as("application/x-ndjson").header("content-encoding", "gzip");
    compressed.send().await.invalid("Content-Encoding");
    world.office_get(&path).await.refused(404, "not_found");
}

#[tokio::test]
async fn valid_lines_apply_and_each_invalid_one_has_its_errors() {
    let world = world().await;
    let seller = world.seller().await;
    let good = offer_line(2, json!({}));
    let odd = json!({"price": {"amount": 1.5, "currency": "EUR"}, "stock": -1, "zzz": 1});
    let odd = offer_line(2, odd);
    let twice = good.replacen('{', r#"{"title":"twice","#, 1);
    let table = [
        ("{".to_owned(), "-"),
        (offer_body(1, json!({})).to_string(), "id"),
        (offer_line(2, json!({"id": "two"})), "id"),
        (odd, "price.amount price.currency stock zzz"),
        (twice, "-"),
        (format!("{good} {good}"), "-"),
    ];
    let mut lines = vec![offer_line(1, json!({}))];
    lines.extend(table.iter().map(|(line, _)| line.clone()));
    lines.push(offer_line(3, json!({})));
    let report = import(&world, &seller, lines.join("\n")).await;
    assert_eq!(counts(&report), [2, 0, 0, 6]);
    let expected = (2_u64..).zip(table.map(|(_, paths)| paths.to_owned()));
    assert_eq!(rejected(&report), expected.collect::<Vec<_>>());
    let missing = format!("/sellers/{}/offers/{}", seller.id, offer_id(2));
    world.office_get(&missing).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_import_ends_with_its_operators_token() {
    let world = world().await;
    let seller = world.seller().await;
    let mut wire = Wire::importing(&world.server, &seller.id).await;
    let lines = (1..=1_000).map(|n| offer_line(n, json!({})) + "\n");
    assert!(wire.send_chunk(&lines.collect::<String>()).await);
    let offers = "select count(*) from offers";
    world
        .until_count("the first lines are written", offers, &[], 1_000)
        .await;
    world
        .execute("update operator_tokens set revoked_at = api_now()")
        .await;
    assert!(wire.send_chunk(&offer_line(1_001, json!({}))).await);
    wire.send("0\r\n\r\n").await;
    wire.answer().await.expect("an answer").expect(401);
    assert_eq!(world.count(offers, &[]).await, 1_000);
}
