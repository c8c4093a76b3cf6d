//! Driving a browser by `WebDriver` (W3C), as far as the tests need it.
//!
//! It is spoken here directly, over the HTTP client that all tests use: the crates that speak it bring licences that the
//! product does not take, or switch on features of crates that the product shares.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Client, Request};

/// The key under which an element is named (`WebDriver` §12).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// A session of a browser.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    http: Client,
    url: String,
}

impl Session {
    /// Opens a session at a driver's URL.
    pub(crate) async fn open(driver: &str, capabilities: Value) -> Self {
        let http = Client::new();
        let body = json!({"capabilities": {"alwaysMatch": capabilities}});
        let opened = call(http.post(&format!("{driver}/session")).json(&body)).await;
        let id = opened["sessionId"].as_str().expect("a session's id");
        Self {
            url: format!("{driver}/session/{id}"),
            http,
        }
    }

    /// Ends the session, and the browser with it; on a connection of its own, since the others may belong to a runtime that
    /// waits for this.
    pub(crate) async fn close(&self) {
        call(Client::new().request(Method::DELETE, &self.url)).await;
    }

    async fn post(&self, command: &str, body: Value) -> Value {
        call(self.http.post(&format!("{}/{command}", self.url)).json(&body)).await
    }

    async fn read(&self, what: &str) -> String {
        let value = call(self.http.get(&format!("{}/{what}", self.url))).await;
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Goes to an address and waits until the page is loaded.
    pub(crate) async fn go(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    /// Where the browser is.
    pub(crate) async fn address(&self) -> String {
        self.read("url").await
    }

    /// The title of the page.
    pub(crate) async fn title(&self) -> String {
        self.read("title").await
    }

    /// The page as the browser has it.
    pub(crate) async fn source(&self) -> String {
        self.read("source").await
    }

    async fn find(&self, css: &str) -> String {
        let query = json!({"using": "css selector", "value": css});
        let found = self.post("element", query).await;
        found[ELEMENT].as_str().expect("an element's id").to_owned()
    }

    /// How many elements there are.
    pub(crate) async fn count(&self, css: &str) -> usize {
        let query = json!({"using": "css selector", "value": css});
        self.post("elements", query).await.as_array().map_or(0, Vec::len)
    }

    /// Clicks on the first element that fits, which stays on the page.
    pub(crate) async fn click(&self, css: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/click"), json!({})).await;
    }

    /// Clicks on the first element that fits, and waits for the page that this leads to.
    pub(crate) async fn follow(&self, css: &str) {
        let page = self.find("html").await;
        self.click(css).await;
        let arrived = async {
            // An element of a page that is gone cannot be asked for its name.
            let name = format!("{}/element/{page}/name", self.url);
            while self.http.get(&name).send().await.status == 200 {
                tokio::time::sleep(PAUSE).await;
            }
            while self.run("return document.readyState").await != "complete" {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let arrived = tokio::time::timeout(PATIENCE, arrived).await;
        assert!(arrived.is_ok(), "{css} leads to no other page");
    }

    /// Types into the first field that fits, in place of what it holds.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/clear"), json!({})).await;
        self.post(&format!("element/{element}/value"), json!({ "text": text }))
            .await;
    }

    /// The text of the first element that fits, as it is seen.
    pub(crate) async fn text(&self, css: &str) -> String {
        let element = self.find(css).await;
        self.read(&format!("element/{element}/text")).await
    }

    /// Runs a script in the page and gives what it returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.call(script, json!([])).await
    }

    /// The same with a list of arguments.
    pub(crate) async fn call(&self, script: &str, arguments: Value) -> Value {
        self.post("execute/sync", json!({"script": script, "args": arguments}))
            .await
    }

    /// Waits until an element that fits is there and shows this text.
    pub(crate) async fn wait_for(&self, css: &str, text: &str) {
        let script = "const one = document.querySelector(arguments[0]); return one && one.innerText.includes(arguments[1])";
        let shown = async {
            let body = json!({"script": script, "args": [css, text]});
            while self.post("execute/sync", body.clone()).await != true {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let shown = tokio::time::timeout(PATIENCE, shown).await;
        assert!(
            shown.is_ok(),
            "{css} does not show {text}: {}",
            self.source().await
        );
    }

    /// What the console has been told since the last look at it: errors, warnings, breaches of the page's policy.
    pub(crate) async fn complaints(&self) -> Vec<Value> {
        let told = self.post("se/log", json!({"type": "browser"})).await;
        let mut told = told.as_array().cloned().unwrap_or_default();
        // What is below are hints to developers.
        told.retain(|one| one["level"] == "SEVERE" || one["level"] == "WARNING");
        told
    }

    /// A command of the browser's own protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.post("goog/cdp/execute", body).await
    }

    /// A picture of the whole page (PNG).
    pub(crate) async fn picture(&self) -> Vec<u8> {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let taken = self.devtools("Page.captureScreenshot", parameters).await;
        let data = taken["data"].as_str().expect("a picture");
        BASE64_STANDARD.decode(data).unwrap()
    }
}

/// Sends a command; its failure is the test's.
async fn call(request: Request) -> Value {
    let answer = tokio::time::timeout(PATIENCE, request.send()).await;
    let answer = answer.expect("the driver answers");
    assert!(
        answer.status == 200,
        "the browser refuses: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json()["value"].clone()
}
