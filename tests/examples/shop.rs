//! A sandbox with the marketplace's actions, and recording proxies between it and an example in both
//! directions.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use blackbox::{Exchange, RecordingProxy, Sandbox, free_port, text, until};
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Client, Request};

use crate::PROGRAM;
use crate::program::{Example, Language};

/// The index of the sandbox's application for its owner, and of the one for other sellers.
const OWN: usize = 0;
const FOR_OTHERS: usize = 1;

/// The example's list of the orders that are to be shipped, at its first start and after a gap.
pub(crate) const BEGINNING: &str = "/v1/orders?status=processing";
/// What the example reads of the journal.
pub(crate) const CATCHING_UP: &str = "/v1/events?";

#[derive(Debug)]
pub(crate) struct Shop {
    pub sandbox: Sandbox,
    /// The example's requests to the service.
    pub calls: RecordingProxy,
    /// The service's requests to the example.
    pub events: RecordingProxy,
    port: u16,
    pub client: Client,
    folder: TempDir,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
        let port = free_port();
        Self {
            calls: RecordingProxy::start(&sandbox.text("base_url")).await,
            events: RecordingProxy::start(&format!("http://127.0.0.1:{port}")).await,
            port,
            client: Client::new(),
            sandbox,
            folder,
        }
    }

    /// Starts an example: for its owner, or with the refresh tokens of other sellers.
    pub(crate) async fn example(&self, language: Language, refresh_tokens: &[&str]) -> Example {
        let for_others = !refresh_tokens.is_empty();
        let application = self.application(if for_others { FOR_OTHERS } else { OWN });
        let text = |name: &str| application[name].as_str().unwrap().to_owned();
        let mut environment = vec![
            ("API_URL", self.calls.url.clone()),
            ("CLIENT_ID", text("client_id")),
            ("CLIENT_SECRET", text("client_secret")),
            ("WEBHOOK_URL", format!("{}/hooks", self.events.url)),
            ("PORT", self.port.to_string()),
            ("CHANGES", self.folder.path().display().to_string()),
        ];
        if for_others {
            self.consented(refresh_tokens);
            environment.push(("SELLERS", self.sellers().display().to_string()));
        }
        let mut example = Example::new(language, self.folder.path(), environment);
        example.start();
        self.calls.has(1, "GET", BEGINNING).await;
        example
    }

    /// The file that names the example's sellers.
    fn sellers(&self) -> PathBuf {
        self.folder.path().join("sellers.json")
    }

    /// Gives these refresh tokens to the example, from its next start on.
    pub(crate) fn consented(&self, refresh_tokens: &[&str]) {
        let named = refresh_tokens.iter().enumerate();
        let sellers: HashMap<_, _> = named
            .map(|(number, token)| (format!("seller-{number}"), token))
            .collect();
        fs::write(self.sellers(), json!(sellers).to_string()).unwrap();
    }

    /// An application of the first seller.
    pub(crate) fn application(&self, number: usize) -> &Value {
        &self.seller(0)["applications"][number]
    }

    /// The application for other sellers.
    pub(crate) fn partner(&self) -> &Value {
        self.application(FOR_OTHERS)
    }

    pub(crate) fn seller(&self, number: usize) -> &Value {
        &self.sandbox.credentials["sellers"][number]
    }

    pub(crate) fn base_url(&self) -> &str {
        self.sandbox.credentials["base_url"].as_str().unwrap()
    }

    /// Starts the example again and waits until it has caught up.
    pub(crate) async fn start_again(&self, example: &mut Example) {
        let readings = self.calls.exchanges("GET", CATCHING_UP).len();
        example.start();
        self.calls.has(readings + 1, "GET", CATCHING_UP).await;
    }

    /// The changes of offers that the example is to send for its owner.
    fn changes(&self) -> File {
        let file = self.folder.path().join("owner.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(file);
        file.unwrap()
    }

    /// Appends to the changes, and returns how long they are.
    pub(crate) fn change(&self, text: &str) -> u64 {
        let mut file = self.changes();
        file.write_all(text.as_bytes()).unwrap();
        file.metadata().unwrap().len()
    }

    /// Cuts the changes to this length.
    pub(crate) fn truncate_changes(&self, length: u64) {
        self.changes().set_len(length).unwrap();
    }

    /// The files in which the example keeps its state.
    pub(crate) fn state(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path().join("state")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// The first seller's example of an offer.
    pub(crate) async fn offer(&self) -> Value {
        let token = text(self.seller(0), "personal_token");
        let offer = text(&self.seller(0)["examples"], "offer");
        let read = self.sandbox.get(&token, &format!("/v1/offers/{offer}")).await;
        read.expect(200).json()
    }

    /// Repeats a delivery as of some minutes from now, with a signature of Standard Webhooks that begins with `wrong`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the example compares it with this machine's clock"
    )]
    pub(crate) async fn repeat_signed(&self, delivery: &Exchange, minutes: i64, wrong: &str) -> Answer {
        let at = (chrono::Utc::now() + chrono::TimeDelta::minutes(minutes))
            .timestamp()
            .to_string();
        let subscription = &self.calls.exchanges("POST", "/v1/webhooks")[0];
        let secret = text(&subscription.answered().json(), "secret");
        let mut again = delivery.clone();
        let request = &mut again.request;
        let id = request.header("x-delivery-id");
        let signed = [format!("{id}.{at}.").as_bytes(), &request.body].concat();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let signature = BASE64_STANDARD.encode(hmac::sign(&key, &signed));
        let signatures = format!("v1,AAAA {wrong}v1,{signature}");
        let headers = [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", at),
            ("webhook-signature", signatures),
        ];
        request.headers.retain(|(name, _)| !name.starts_with("webhook-"));
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        request.headers.extend(headers);
        self.events.repeat(&again, |_| ()).await
    }

    /// A request to the back office, which has no rate limit.
    fn at_the_office(&self, method: Method, path: &str) -> Request {
        let url = format!("{}{path}", self.sandbox.text("backoffice_url"));
        let request = self.client.request(method, &url);
        request.bearer(&self.sandbox.text("backoffice_token"))
    }

    /// An action of the marketplace.
    pub(crate) async fn office(&self, path: &str, body: &Value) -> Answer {
        self.at_the_office(Method::POST, path).json(body).send().await
    }

    /// Places an order at one or several sellers; returns its id.
    pub(crate) async fn placed_order(&self, sellers: &[usize]) -> String {
        let sellers = sellers.iter().map(|number| self.seller(*number));
        let items: Vec<_> = sellers
            .map(|seller| {
                json!({"seller_id": seller["id"], "offer_id": seller["examples"]["offer"], "quantity": 1})
            })
            .collect();
        let placed = self.office("/orders", &json!({"items": items})).await.expect(201);
        text(&placed.json(), "order_id")
    }

    pub(crate) async fn pay(&self, order: &str) {
        let paid = format!("/orders/{order}/payment");
        self.office(&paid, &json!({})).await.expect(200);
    }

    /// Places and pays an order at the first seller; returns its id.
    pub(crate) async fn paid_order(&self) -> String {
        let order = self.placed_order(&[0]).await;
        self.pay(&order).await;
        order
    }

    /// The status of a whole order.
    pub(crate) async fn status(&self, order: &str) -> String {
        let request = self.at_the_office(Method::GET, &format!("/orders/{order}"));
        text(&request.send().await.expect(200).json(), "status")
    }

    /// Waits until an order is shipped.
    pub(crate) async fn is_shipped(&self, order: &str) {
        let is_so = async || self.status(order).await == "shipped";
        until(&format!("the shipment of {order}"), is_so).await;
    }
}
