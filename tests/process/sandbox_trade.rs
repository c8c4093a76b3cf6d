//! The whole trade in the sandbox: its simulated carriers, its mails in files, and what it is seeded with.

use std::path::{Path, PathBuf};

use blackbox::{Expect, Sandbox, eventually, line, order_body};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Client, Request, TestDatabase};

use crate::PROGRAM;

/// A sandbox over a database of the tests, in which parcels are looked up often.
struct Trade {
    sandbox: Sandbox,
    client: Client,
    token: String,
    mail: PathBuf,
    _folder: tempfile::TempDir,
    _database: TestDatabase,
}

impl Trade {
    async fn start() -> Self {
        let database = TestDatabase::empty().await;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let environment = [
            ("DATABASE_URL", database.url()),
            ("SELLER_API__TRACKING__POLL_INTERVAL", "100ms"),
        ];
        let sandbox = Sandbox::start(PROGRAM, &data, &[], &environment).await;
        let token = sandbox.credentials["sellers"][0]["personal_token"]
            .as_str()
            .unwrap()
            .to_owned();
        Self {
            sandbox,
            client: Client::new(),
            token,
            mail: data.join("mail"),
            _folder: folder,
            _database: database,
        }
    }

    fn example(&self, name: &str) -> &str {
        self.sandbox.credentials["sellers"][0]["examples"][name]
            .as_str()
            .unwrap_or_else(|| panic!("no example `{name}`"))
    }

    fn office(&self, method: Method, path: &str) -> Request {
        let url = format!(
            "{}{path}",
            self.sandbox.credentials["backoffice_url"].as_str().unwrap()
        );
        self.client
            .request(method, &url)
            .bearer(self.sandbox.credentials["backoffice_token"].as_str().unwrap())
    }

    /// A new paid order of the first seller's.
    async fn paid(&self) -> String {
        let seller = self.sandbox.credentials["sellers"][0]["id"].as_str().unwrap();
        let seller = blackbox::Seller {
            id: seller.to_owned(),
            seller_no: 1,
            email: String::new(),
        };
        let body = order_body(&[line(&seller, self.example("offer"), 1)], json!({}));
        let placed = self
            .office(Method::POST, "/orders")
            .json(&body)
            .send()
            .await
            .expect(201)
            .json();
        let id = placed["order_id"].as_str().unwrap().to_owned();
        self.office(Method::POST, &format!("/orders/{id}/payment"))
            .send()
            .await
            .expect(200);
        id
    }

    async fn ship(&self, order: &str, carrier: &str, number: &str) -> Answer {
        let url = format!(
            "{}/v1/orders/{order}/shipments",
            self.sandbox.credentials["base_url"].as_str().unwrap()
        );
        let request = self
            .client
            .post(&url)
            .bearer(&self.token)
            .header("idempotency-key", number);
        request
            .json(&json!({"carrier": carrier, "tracking_number": number}))
            .send()
            .await
    }

    async fn order(&self, order: &str) -> Value {
        self.sandbox
            .get(&self.token, &format!("/v1/orders/{order}"))
            .await
            .expect(200)
            .json()
    }
}

/// The mails in a folder that hold a text.
fn mails_with(folder: &Path, text: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).map(|files| files.filter_map(Result::ok).collect::<Vec<_>>());
    let mails = files
        .unwrap_or_default()
        .into_iter()
        .filter(|file| file.path().extension().is_some_and(|end| end == "eml"));
    mails
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .filter(|mail| mail.contains(text))
        .collect()
}

#[tokio::test]
async fn a_shipment_with_a_key_lays_one_mail_into_the_folder() {
    let trade = Trade::start().await;
    let order = trade.paid().await;
    let first = trade
        .ship(&order, "inpost", "520000000000000000TRANSIT1")
        .await
        .expect(201);
    let again = trade
        .ship(&order, "inpost", "520000000000000000TRANSIT1")
        .await
        .expect(201);
    assert_eq!(
        (again.must("idempotent-replayed"), &again.bytes),
        ("true", &first.bytes)
    );
    assert_eq!(first.json()["buyer_notified"], true);
    let number = trade.order(&order).await["order_number"]
        .as_str()
        .unwrap()
        .to_owned();
    let mail = eventually("the mail", async || mails_with(&trade.mail, &number).pop()).await;
    assert_eq!(mails_with(&trade.mail, &number).len(), 1);
    for part in [
        "ewa@buyer.example",
        "520000000000000000TRANSIT1",
        "InPost",
        "Message-ID:",
        "text/plain",
        "text/html",
    ] {
        assert!(mail.contains(part), "no `{part}` in the mail:\n{mail}");
    }
    assert_eq!(
        trade.order(&order).await["shipment"]["tracking_status"],
        "in_transit"
    );
}

#[tokio::test]
async fn simulated_carriers_go_by_the_tracking_number() {
    let trade = Trade::start().await;
    for (carrier, number, already, status) in [
        ("dhl", "AA-DELIVERED-1", true, "delivered"),
        ("gls", "AA-TRANSIT-1", false, "shipped"),
        ("ups", "AA-ERROR-1", false, "shipped"),
        ("fedex", "AA-TIMEOUT-1", false, "shipped"),
        ("dpd", "AA-NOBODYS-1", false, "shipped"),
        // It is never asked, in the sandbox too.
        ("other", "AA-DELIVERED-2", false, "shipped"),
    ] {
        let order = trade.paid().await;
        let made = trade.ship(&order, carrier, number).await.expect(201).json();
        assert_eq!(
            (&made["delivered_already"], &made["buyer_notified"]),
            (&json!(already), &json!(!already)),
            "{number}"
        );
        let seen = trade.order(&order).await;
        assert_eq!(seen["status"], status, "{number}");
        if already {
            assert_eq!(seen["shipped_at"], seen["delivered_at"]);
        }
    }
    let order = trade.paid().await;
    let made = trade
        .ship(&order, "poczta_polska", "AA-LATER-1")
        .await
        .expect(201)
        .json();
    assert_eq!(made["delivered_already"], false);
    eventually("the delivery", async || {
        (trade.order(&order).await["status"] == "delivered").then_some(())
    })
    .await;
    assert!(mails_with(&trade.mail, "AA-DELIVERED-1").is_empty());
    eventually("its mail", async || mails_with(&trade.mail, "AA-LATER-1").pop()).await;
}

#[tokio::test]
async fn it_is_seeded_with_orders_of_every_kind() {
    let trade = Trade::start().await;
    for status in ["pending", "processing", "shipped", "delivered", "cancelled"] {
        let list = trade
            .sandbox
            .get(&trade.token, &format!("/v1/orders?status={status}"))
            .await
            .expect(200)
            .json();
        assert!(
            !list["items"].as_array().unwrap().is_empty(),
            "no order is {status}"
        );
    }
    assert_eq!(trade.order(trade.example("test_order")).await["is_test"], true);
    assert_eq!(trade.order(trade.example("order")).await["is_test"], false);
    let several = trade.example("multi_seller_order");
    let whole = trade
        .office(Method::GET, &format!("/orders/{several}"))
        .send()
        .await
        .expect(200)
        .json();
    assert!(whole["parts"].as_array().unwrap().len() > 1);
    trade
        .sandbox
        .get(&trade.token, &format!("/v1/offers/{}", trade.example("offer")))
        .await
        .expect(200);
    // The example is an order that the guide's calls can ship.
    trade
        .ship(trade.example("test_order"), "dhl", "AA-DELIVERED-1")
        .await;
    assert_ne!(
        trade.order(trade.example("test_order")).await["status"],
        "delivered",
        "test orders ask no carrier"
    );
}
