//! The sandbox's orders: what the examples name.

use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use blackbox::Sandbox;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Answer, Client};
use tokio::time::{Instant, sleep};

use crate::PROGRAM;

const PATIENCE: Duration = Duration::from_secs(20);

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no `{field}` in {value}"))
}

fn example<'a>(seller: &'a Value, name: &str) -> &'a str {
    text(&seller["examples"], name)
}

/// How many orders of each status a seller is shown, and under which numbers.
async fn orders(sandbox: &Sandbox, seller: &Value) -> (BTreeMap<String, usize>, Vec<String>) {
    let token = text(seller, "personal_token");
    let page = sandbox
        .get(token, "/v1/orders?limit=200")
        .await
        .expect(200)
        .json();
    let items = page["items"].as_array().unwrap();
    let mut statuses = BTreeMap::new();
    for item in items {
        *statuses.entry(text(item, "status").to_owned()).or_default() += 1;
    }
    (
        statuses,
        items
            .iter()
            .map(|item| text(item, "order_number").to_owned())
            .collect(),
    )
}

async fn ship(sandbox: &Sandbox, seller: &Value, order: &str, number: &str) -> Answer {
    let url = format!(
        "{}/v1/orders/{order}/shipments",
        text(&sandbox.credentials, "base_url")
    );
    let body = json!({"carrier": "inpost", "tracking_number": number});
    Client::new()
        .post(&url)
        .bearer(text(seller, "personal_token"))
        .json(&body)
        .send()
        .await
}

fn mails(data: &Path) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(data.join("mail")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mails = paths.filter(|path| path.extension().is_some_and(|extension| extension == "eml"));
    mails
        .map(|path| {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            (mode, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what}: it does not come");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_examples_are_what_they_say_and_history_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let environment = [("SELLER_API__TRACKING__POLL_INTERVAL", "200ms")];
    let sandbox = Sandbox::start(PROGRAM, &data, &[], &environment).await;
    let sellers = sandbox.credentials["sellers"].as_array().unwrap().clone();
    let first = &sellers[0];
    let token = text(first, "personal_token");
    let (statuses, numbers) = orders(&sandbox, first).await;
    assert!(numbers.len() > 25, "{numbers:?}");
    assert!(
        mails(&data).is_empty(),
        "what was shipped days ago is not told now"
    );

    for seller in &sellers {
        let order = sandbox
            .get(
                text(seller, "personal_token"),
                &format!("/v1/orders/{}", example(seller, "order")),
            )
            .await
            .expect(200)
            .json();
        assert_eq!(
            (text(&order, "status"), &order["is_test"]),
            ("processing", &json!(false))
        );
    }
    let test = sandbox
        .get(token, &format!("/v1/orders/{}", example(first, "test_order")))
        .await;
    let test = test.expect(200).json();
    assert_eq!(test["is_test"], json!(true));
    assert!(!numbers.iter().any(|number| number == text(&test, "order_number")));
    let refused = ship(&sandbox, first, example(first, "multi_seller_order"), "1234").await;
    assert_eq!(refused.expect(409).code(), "multi_seller_order");

    ship(&sandbox, first, example(first, "order"), "LATER1234")
        .await
        .expect(201);
    eventually("the mail", async || mails(&data).len() == 1).await;
    let [(mode, mail)] = &mails(&data)[..] else {
        panic!("one mail")
    };
    assert!(*mode == 0o600 && mail.contains("LATER1234"), "{mode:o} {mail}");
    eventually("the delivery", async || {
        let path = format!("/v1/orders/{}?fields=status", example(first, "order"));
        sandbox.get(token, &path).await.json()["status"] == "delivered"
    })
    .await;
    let (now, _) = orders(&sandbox, first).await;
    assert_eq!(
        now["shipped"], statuses["shipped"],
        "the others stay on their way"
    );
    assert_eq!(sandbox.end(Signal::TERM).await, Some(0));
}
