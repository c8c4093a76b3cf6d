//! The environment of one test: a database, a running server, and helpers that create a marketplace's data.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Client, Request, ServerOptions, TestDatabase, TestServer};

use crate::{Expect, assert_no_secret, documented, offer_body, offer_id, request};

/// A server over a separate database.
#[derive(Debug)]
pub struct World {
    /// The server, or the fleet's first process; dropped before its database.
    pub server: TestServer,
    pub client: Client,
    /// The options of the server, to start more servers with them.
    pub options: ServerOptions,
    /// The path of the program.
    pub program: PathBuf,
    pub database: TestDatabase,
    numbers: AtomicU32,
}

#[derive(Debug, Clone)]
pub struct Seller {
    pub id: String,
    /// The number that people use.
    pub seller_no: i64,
    /// The email address at the registration.
    pub email: String,
}

#[derive(Debug, Clone)]
pub struct Application {
    pub client_id: String,
    /// Empty for a public client.
    pub client_secret: String,
    /// As in the answer to the registration.
    pub status: String,
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct PersonalToken {
    /// Needed to revoke the token.
    pub id: String,
    pub token: String,
}

/// Options with these settings, named without `SELLER_API__`.
pub fn set(options: ServerOptions, settings: &[(&str, &str)]) -> ServerOptions {
    settings.iter().fold(options, |options, (key, value)| {
        options.set(&format!("SELLER_API__{key}"), value)
    })
}

impl World {
    /// Starts the program with the contract's limits.
    pub async fn start(program: &str) -> Self {
        Self::with(program, |options| options).await
    }

    /// Starts the program with changed settings.
    pub async fn with(program: &str, settings: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        Self::over(program, TestDatabase::create().await, settings).await
    }

    /// Starts the program over a prepared database.
    pub async fn over(
        program: &str,
        database: TestDatabase,
        settings: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let options = settings(ServerOptions::new(program));
        let server = TestServer::start(&options, &database).await;
        documented::watch(&server.base_url, &server.backoffice_url);
        let (client, numbers) = (Client::new(), AtomicU32::new(0));
        Self {
            server,
            client,
            options,
            program: program.into(),
            database,
            numbers,
        }
    }

    /// Starts another process on the same database with the same settings.
    pub async fn another(&self) -> TestServer {
        let server = self.server.another(&self.options, &self.database).await;
        documented::watch(&server.base_url, &server.backoffice_url);
        server
    }

    /// The URL of a path on the public listener.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.base_url)
    }

    /// Sends an authenticated GET to the API.
    pub async fn get(&self, token: &str, path: &str) -> Answer {
        self.client.get(&self.url(path)).bearer(token).send().await
    }

    /// A request to the public listener, to be completed and sent.
    pub fn at(&self, method: &str, path: &str) -> Request {
        let method = method.parse().expect("a method");
        self.client.request(method, &self.url(path))
    }

    /// The bytes of a valid request to the public listener with an access token and `more` headers.
    pub fn raw(&self, method: &str, target: &str, token: &str, more: &[(&str, &str)]) -> String {
        let bearer = format!("Bearer {token}");
        let valid = [("user-agent", "Tests/1.0"), ("authorization", bearer.as_str())];
        request(method, target, &[&valid, more].concat())
    }

    /// Sends a GET to the public listener without a token.
    pub async fn visit(&self, path: &str) -> Answer {
        self.at("GET", path).send().await
    }

    /// Reads JSON from the API; asserts 200.
    pub async fn read(&self, token: &str, path: &str) -> Value {
        self.get(token, path).await.expect(200).json()
    }

    /// Asserts that the API rejects a GET with one error entry with this code.
    pub async fn refuses(&self, token: &str, path: &str, status: u16, code: &str) {
        self.get(token, path).await.refused(status, code);
    }

    /// Asserts that a GET gets a 400 with one entry for each of these paths.
    pub async fn invalid(&self, token: &str, path: &str, paths: &str) {
        self.get(token, path).await.invalid(paths);
    }

    /// A request to the back office, to be completed and sent.
    pub fn office(&self, method: Method, path: &str) -> Request {
        let url = format!("{}{path}", self.server.backoffice_url);
        self.client
            .request(method, &url)
            .bearer(&self.server.operator_token)
    }

    /// Sends a POST with a body to the back office.
    pub async fn office_post(&self, path: &str, body: &Value) -> Answer {
        self.office(Method::POST, path).json(body).send().await
    }

    /// Sends a GET to the back office.
    pub async fn office_get(&self, path: &str) -> Answer {
        self.office(Method::GET, path).send().await
    }

    /// Reads JSON from the back office; asserts 200.
    pub async fn office_read(&self, path: &str) -> Value {
        self.office_get(path).await.expect(200).json()
    }

    /// Creates something through the back office; asserts 201.
    pub async fn office_made(&self, path: &str, body: &Value) -> Value {
        self.office_post(path, body).await.expect(201).json()
    }

    /// Sends a POST without a body to the back office; asserts 200.
    pub async fn office_done(&self, path: &str) {
        self.office(Method::POST, path).send().await.expect(200);
    }

    /// Sends a DELETE to the back office.
    pub async fn office_delete(&self, path: &str) -> Answer {
        self.office(Method::DELETE, path).send().await
    }

    pub async fn close(&self, seller: &str) {
        self.office_done(&format!("/sellers/{seller}/closure")).await;
    }

    /// A number that is unique in this world.
    pub fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub async fn seller(&self) -> Seller {
        self.registered(json!({})).await
    }

    /// A new seller; `changes` override the fields of a valid registration.
    pub async fn registered(&self, changes: Value) -> Seller {
        let email = format!("seller-{}@shop.example", self.next_number());
        let body = merged(json!({"name": "Kettles & Co", "email": email}), changes);
        let made = self.office_made("/sellers", &body).await;
        Seller {
            id: text(&made, "id"),
            seller_no: made["seller_no"].as_i64().expect("a seller number"),
            email: text(&body, "email"),
        }
    }

    /// Registers an active confidential application for the seller's own use.
    pub async fn application(&self, seller: &Seller, scopes: &[&str]) -> Application {
        self.register(seller, json!({"scopes": scopes})).await
    }

    /// Registers an application with the body [`Self::registration`] and `changes`.
    pub async fn register(&self, seller: &Seller, changes: Value) -> Application {
        let registration = self.registration(changes);
        let path = format!("/sellers/{}/applications", seller.id);
        let made = self.office_made(&path, &registration).await;
        Application {
            client_id: text(&made, "client_id"),
            client_secret: made["client_secret"].as_str().unwrap_or_default().to_owned(),
            status: text(&made, "status"),
            name: text(&registration, "name"),
        }
    }

    /// A valid registration with a unique name; `changes` override its fields.
    pub fn registration(&self, changes: Value) -> Value {
        let proper = json!({
            "name": format!("Stock Sync {}", self.next_number()),
            "documentation_url": "https://docs.example/sync",
            "purpose": "own_use",
            "client_type": "confidential",
            "redirect_uris": [],
            "scopes": ["offers:read"],
            "accept_terms": true,
        });
        merged(proper, changes)
    }

    /// Requests a token with the application's credentials.
    pub async fn token_answer(&self, application: &Application) -> Answer {
        let body = json!({
            "grant_type": "client_credentials",
            "client_id": application.client_id,
            "client_secret": application.client_secret,
        });
        let request = self.client.post(&self.url("/oauth/token"));
        request.json(&body).send().await
    }

    /// An access token with all scopes of the application.
    pub async fn token(&self, application: &Application) -> String {
        let answer = self.token_answer(application).await.expect(200);
        text(&answer.json(), "access_token")
    }

    /// The request that issues a personal token; `changes` override the fields of a valid body.
    pub fn issuing(&self, seller: &Seller, changes: Value) -> Request {
        let body = merged(json!({"name": "script", "scopes": ["offers:read"]}), changes);
        let path = format!("/sellers/{}/personal-tokens", seller.id);
        self.office(Method::POST, &path).json(&body)
    }

    /// A personal token that does not expire.
    pub async fn personal_token(&self, seller: &Seller, scopes: &[&str]) -> PersonalToken {
        let issuing = self.issuing(seller, json!({"scopes": scopes}));
        let made = issuing.send().await.expect(201).json();
        PersonalToken {
            id: text(&made, "id"),
            token: text(&made, "token"),
        }
    }

    /// A seller with a token that may read offers.
    pub async fn reader(&self) -> (Seller, String) {
        let seller = self.seller().await;
        let token = self.personal_token(&seller, &["offers:read"]).await.token;
        (seller, token)
    }

    /// An operator's transition of an application, such as `suspension`.
    pub async fn move_application(&self, client_id: &str, step: &str) -> Answer {
        self.office(Method::POST, &format!("/applications/{client_id}/{step}"))
            .send()
            .await
    }

    /// Makes an operator's transition; asserts success.
    pub async fn moved(&self, application: &Application, step: &str) {
        let answer = self.move_application(&application.client_id, step).await;
        answer.expect(200);
    }

    pub async fn delete_application(&self, application: &Application) {
        let path = format!("/applications/{}", application.client_id);
        self.office_delete(&path).await.expect(204);
    }

    pub async fn set_scopes(&self, application: &Application, scopes: &[&str]) {
        let changes = json!({"scopes": scopes});
        let answer = self.adjust(&application.client_id, &changes).await;
        answer.expect(200);
    }

    /// Sets the limit of a token's application. Fails if the application is over its limit, since that blocks
    /// the lookup of its id.
    pub async fn set_limit(&self, token: &str, limit: i64) {
        let me = self.read(token, "/v1/me").await;
        let client_id = text(&me["app"], "client_id");
        let answer = self.adjust(&client_id, &json!({"rate_limit": limit})).await;
        answer.expect(200);
    }

    pub async fn revoke_personal(&self, seller: &Seller, token: &PersonalToken) {
        let path = format!("/sellers/{}/personal-tokens/{}", seller.id, token.id);
        self.office_delete(&path).await.expect(204);
    }

    pub async fn adjust(&self, client_id: &str, changes: &Value) -> Answer {
        self.office(Method::PATCH, &format!("/applications/{client_id}"))
            .json(changes)
            .send()
            .await
    }

    /// Feeds one offer and returns the answer, of any status.
    pub async fn put(&self, seller: &Seller, id: &str, body: &Value) -> Answer {
        let path = format!("/sellers/{}/offers/{id}", seller.id);
        self.office(Method::PUT, &path).json(body).send().await
    }

    /// Feeds the n-th offer with `changes` and returns its id.
    pub async fn offer(&self, seller: &Seller, n: usize, changes: Value) -> String {
        let answer = self.put(seller, &offer_id(n), &offer_body(n, changes)).await;
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        offer_id(n)
    }

    /// Imports offers as NDJSON.
    pub async fn import(&self, seller: &Seller, lines: impl Into<Vec<u8>>) -> Answer {
        let path = format!("/sellers/{}/offers:import", seller.id);
        let request = self
            .office(Method::POST, &path)
            .header("content-type", "application/x-ndjson");
        request.body(lines).send().await
    }
}

impl Drop for World {
    /// Asserts that the log holds no secret, whatever the test did.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_no_secret(&self.server.log());
        }
    }
}

/// Merges two JSON objects: fields of the second one win.
pub fn merged(mut under: Value, over: Value) -> Value {
    let (Some(fields), Value::Object(changes)) = (under.as_object_mut(), over) else {
        panic!("two objects are merged");
    };
    fields.extend(changes);
    under
}

/// A string field of a JSON object.
#[track_caller]
pub fn text(json: &Value, field: &str) -> String {
    json[field]
        .as_str()
        .unwrap_or_else(|| panic!("no `{field}` in {json}"))
        .to_owned()
}
