//! Controls a browser through `WebDriver` (W3C), with the commands that the tests need.
//!
//! It uses the tests' HTTP client directly: the crates for this protocol have licences that the product does
//! not accept, or enable features of crates that the product shares.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Client, Request};

/// The key of an element's id (`WebDriver` §12).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
const PATIENCE: Duration = Duration::from_secs(70);
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub(crate) struct Session {
    http: Client,
    url: String,
}

impl Session {
    /// Opens a session with the driver at this URL.
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

    /// Ends the session and closes the browser. Uses a separate connection, since the others may belong to a
    /// runtime that waits for this call.
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

    /// Opens a URL and waits until the page is loaded.
    pub(crate) async fn go(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    /// The URL of the current page.
    pub(crate) async fn address(&self) -> String {
        self.read("url").await
    }

    /// Asserts that the URL of the current page has this part.
    pub(crate) async fn is_at(&self, part: &str) {
        let address = self.address().await;
        assert!(
            address.contains(part),
            "{part} is not in {address}: {}",
            self.source().await
        );
    }

    pub(crate) async fn title(&self) -> String {
        self.read("title").await
    }

    /// The page's current HTML.
    pub(crate) async fn source(&self) -> String {
        self.read("source").await
    }

    /// The first matching element, once there is one: scripts add parts of a page one after another.
    async fn find(&self, css: &str) -> String {
        let appeared = async {
            while self.count(css).await == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let appeared = tokio::time::timeout(PATIENCE, appeared).await;
        assert!(appeared.is_ok(), "no element is {css}");
        let query = json!({"using": "css selector", "value": css});
        let found = self.post("element", query).await;
        found[ELEMENT].as_str().expect("an element's id").to_owned()
    }

    /// The number of matching elements.
    pub(crate) async fn count(&self, css: &str) -> usize {
        let query = json!({"using": "css selector", "value": css});
        self.post("elements", query).await.as_array().map_or(0, Vec::len)
    }

    /// Clicks on the first matching element, once no other one lies over it, and again if it was replaced: pages move while they
    /// load. The page stays.
    pub(crate) async fn click(&self, css: &str) {
        let clicked = async {
            loop {
                let click = format!("{}/element/{}/click", self.url, self.find(css).await);
                let answer = answer(self.http.post(&click).json(&json!({}))).await;
                let error = &answer.json()["value"]["error"];
                if error != "element click intercepted" && error != "stale element reference" {
                    return value(&answer);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let clicked = tokio::time::timeout(PATIENCE, clicked).await;
        assert!(clicked.is_ok(), "another element lies over {css}");
    }

    /// Clicks on the first matching element and waits for the next page.
    pub(crate) async fn follow(&self, css: &str) {
        let page = self.find("html").await;
        self.click(css).await;
        let arrived = async {
            // Once the page has gone, the command for the name of its element fails.
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

    /// Replaces the content of the first matching field.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/clear"), json!({})).await;
        self.post(&format!("element/{element}/value"), json!({ "text": text }))
            .await;
    }

    /// The visible text of the first matching element.
    pub(crate) async fn text(&self, css: &str) -> String {
        let element = self.find(css).await;
        self.read(&format!("element/{element}/text")).await
    }

    /// Runs a script in the page and returns its result.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.call(script, json!([])).await
    }

    /// Like [`Self::run`], with a list of arguments.
    pub(crate) async fn call(&self, script: &str, arguments: Value) -> Value {
        self.post("execute/sync", json!({"script": script, "args": arguments}))
            .await
    }

    /// Runs a script that calls its last argument with its result.
    pub(crate) async fn run_async(&self, script: &str) -> Value {
        self.post("execute/async", json!({"script": script, "args": []}))
            .await
    }

    /// Waits until a matching element shows this text.
    pub(crate) async fn wait_for(&self, css: &str, text: &str) {
        self.wait_for_text("innerText", css, text).await;
    }

    /// Waits until a matching element has this text, shown or not.
    pub(crate) async fn wait_for_content(&self, css: &str, text: &str) {
        self.wait_for_text("textContent", css, text).await;
    }

    async fn wait_for_text(&self, property: &str, css: &str, text: &str) {
        let script = "const one = document.querySelector(arguments[0]); return one && one[arguments[2]].includes(arguments[1])";
        let shown = async {
            let body = json!({"script": script, "args": [css, text, property]});
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

    /// The console's new messages since the last call: errors, warnings, policy violations.
    pub(crate) async fn complaints(&self) -> Vec<Value> {
        let told = self.post("se/log", json!({"type": "browser"})).await;
        let mut told = told.as_array().cloned().unwrap_or_default();
        // Lower levels are hints for developers.
        told.retain(|one| one["level"] == "SEVERE" || one["level"] == "WARNING");
        told
    }

    /// Sends a Chrome `DevTools` command.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.post("goog/cdp/execute", body).await
    }
}

/// Sends a command; panics if it fails.
async fn call(request: Request) -> Value {
    value(&answer(request).await)
}

async fn answer(request: Request) -> Answer {
    let answer = tokio::time::timeout(PATIENCE, request.send()).await;
    answer.expect("the driver answers")
}

fn value(answer: &Answer) -> Value {
    assert!(
        answer.status == 200,
        "the browser refuses: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json()["value"].clone()
}
