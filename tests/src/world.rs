//! A world of one test's own: a database, a running server, and what a marketplace puts into it.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Client, Request, ServerOptions, TestDatabase, TestServer};

use crate::{Expect, assert_no_secret, documented, offer_body, offer_id};

/// A server over a database of its own.
#[derive(Debug)]
pub struct World {
    /// The first process; dropped before its database.
    pub server: TestServer,
    /// Sends requests.
    pub client: Client,
    /// How the server was started, for more of them.
    pub options: ServerOptions,
    /// The program.
    pub program: PathBuf,
    /// The database.
    pub database: TestDatabase,
    numbers: AtomicU32,
}

/// A registered seller.
#[derive(Debug, Clone)]
pub struct Seller {
    /// The id.
    pub id: String,
    /// The number people use.
    pub seller_no: i64,
    /// The address it was registered with.
    pub email: String,
}

/// A registered application.
#[derive(Debug, Clone)]
pub struct Application {
    /// The client id.
    pub client_id: String,
    /// Empty for a public client.
    pub client_secret: String,
    /// As the registration answered.
    pub status: String,
    /// The name.
    pub name: String,
}

/// A personal token.
#[derive(Debug, Clone)]
pub struct PersonalToken {
    /// To revoke it by.
    pub id: String,
    /// The token.
    pub token: String,
}

impl World {
    /// Starts the program with the contract's own limits.
    pub async fn start(program: &str) -> Self {
        Self::with(program, |options| options).await
    }

    /// Starts the program with other settings.
    pub async fn with(program: &str, settings: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        Self::over(program, TestDatabase::create().await, settings).await
    }

    /// Starts the program over a database that was prepared.
    pub async fn over(
        program: &str,
        database: TestDatabase,
        settings: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let options = settings(ServerOptions::new(program));
        let server = TestServer::start(&options, &database).await;
        documented::watch(&server.base_url);
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

    /// Another process on the same database, with the same settings.
    pub async fn another(&self) -> TestServer {
        let server = self.server.another(&self.options, &self.database).await;
        documented::watch(&server.base_url);
        server
    }

    /// The address of something on the public listener.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.base_url)
    }

    /// Reads something of the API.
    pub async fn get(&self, token: &str, path: &str) -> Answer {
        self.client.get(&self.url(path)).bearer(token).send().await
    }

    /// A request to the public listener in the making.
    pub fn at(&self, method: &str, path: &str) -> Request {
        let method = method.parse().expect("a method");
        self.client.request(method, &self.url(path))
    }

    /// Reads something of the public listener without a token.
    pub async fn visit(&self, path: &str) -> Answer {
        self.at("GET", path).send().await
    }

    /// Reads something of the API that is there.
    pub async fn read(&self, token: &str, path: &str) -> Value {
        self.get(token, path).await.expect(200).json()
    }

    /// Asserts that the API refuses to show something, with one entry of this code.
    pub async fn refuses(&self, token: &str, path: &str, status: u16, code: &str) {
        self.get(token, path).await.refused(status, code);
    }

    /// Asserts that a read is a 400 with one entry for each of these paths.
    pub async fn invalid(&self, token: &str, path: &str, paths: &[&str]) {
        self.get(token, path).await.invalid(paths);
    }

    /// A call of the back office in the making.
    pub fn office(&self, method: Method, path: &str) -> Request {
        let url = format!("{}{path}", self.server.backoffice_url);
        self.client
            .request(method, &url)
            .bearer(&self.server.operator_token)
    }

    /// A POST of the back office with a body.
    pub async fn office_post(&self, path: &str, body: &Value) -> Answer {
        self.office(Method::POST, path).json(body).send().await
    }

    /// A GET of the back office.
    pub async fn office_get(&self, path: &str) -> Answer {
        self.office(Method::GET, path).send().await
    }

    /// Something of the back office that is there.
    pub async fn office_read(&self, path: &str) -> Value {
        self.office_get(path).await.expect(200).json()
    }

    /// Makes something by the back office (201).
    pub async fn office_made(&self, path: &str, body: &Value) -> Value {
        self.office_post(path, body).await.expect(201).json()
    }

    /// A POST of the back office without a body, which is done (200).
    pub async fn office_done(&self, path: &str) {
        self.office(Method::POST, path).send().await.expect(200);
    }

    /// Deletes something by the back office.
    pub async fn office_delete(&self, path: &str) -> Answer {
        self.office(Method::DELETE, path).send().await
    }

    /// Closes a seller's account.
    pub async fn close(&self, seller: &str) {
        self.office_done(&format!("/sellers/{seller}/closure")).await;
    }

    /// A number that this world has not given before.
    pub fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Registers a seller.
    pub async fn seller(&self) -> Seller {
        let email = format!("seller-{}@shop.example", self.next_number());
        let body = json!({"name": "Kettles & Co", "email": email});
        let made = self.office_post("/sellers", &body).await.expect(201).json();
        let seller_no = made["seller_no"].as_i64().expect("a seller number");
        Seller {
            id: text(&made, "id"),
            seller_no,
            email,
        }
    }

    /// Registers an active, confidential application for the seller's own use.
    pub async fn application(&self, seller: &Seller, scopes: &[&str]) -> Application {
        self.register(seller, json!({"scopes": scopes})).await
    }

    /// Registers an application as [`Self::registration`] with `changes`.
    pub async fn register(&self, seller: &Seller, changes: Value) -> Application {
        let registration = self.registration(changes);
        let path = format!("/sellers/{}/applications", seller.id);
        let made = self.office_post(&path, &registration).await.expect(201).json();
        Application {
            client_id: text(&made, "client_id"),
            client_secret: made["client_secret"].as_str().unwrap_or_default().to_owned(),
            status: text(&made, "status"),
            name: text(&registration, "name"),
        }
    }

    /// A proper registration under a fresh name, `changes` put over it.
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

    /// Asks for a token in the name of an application.
    pub async fn token_answer(&self, application: &Application) -> Answer {
        let body = json!({
            "grant_type": "client_credentials",
            "client_id": application.client_id,
            "client_secret": application.client_secret,
        });
        self.client
            .post(&self.url("/oauth/token"))
            .json(&body)
            .send()
            .await
    }

    /// An access token with all scopes of the application.
    pub async fn token(&self, application: &Application) -> String {
        text(
            &self.token_answer(application).await.expect(200).json(),
            "access_token",
        )
    }

    /// A personal token that does not expire.
    pub async fn personal_token(&self, seller: &Seller, scopes: &[&str]) -> PersonalToken {
        let body = json!({"name": "script", "scopes": scopes});
        let path = format!("/sellers/{}/personal-tokens", seller.id);
        let made = self.office_post(&path, &body).await.expect(201).json();
        PersonalToken {
            id: text(&made, "id"),
            token: text(&made, "token"),
        }
    }

    /// A seller with a token that reads offers.
    pub async fn reader(&self) -> (Seller, String) {
        let seller = self.seller().await;
        let token = self.personal_token(&seller, &["offers:read"]).await.token;
        (seller, token)
    }

    /// An operator's move over an application, such as `suspension`.
    pub async fn move_application(&self, client_id: &str, step: &str) -> Answer {
        self.office(Method::POST, &format!("/applications/{client_id}/{step}"))
            .send()
            .await
    }

    /// A move of the operator's that is made.
    pub async fn moved(&self, application: &Application, step: &str) {
        let answer = self.move_application(&application.client_id, step).await;
        answer.expect(200);
    }

    /// Deletes an application.
    pub async fn delete_application(&self, application: &Application) {
        let path = format!("/applications/{}", application.client_id);
        self.office_delete(&path).await.expect(204);
    }

    /// Gives an application other scopes.
    pub async fn set_scopes(&self, application: &Application, scopes: &[&str]) {
        let changes = json!({"scopes": scopes});
        let answer = self.adjust(&application.client_id, &changes).await;
        answer.expect(200);
    }

    /// Gives the application of a token another limit. Over its limit it cannot be asked after.
    pub async fn set_limit(&self, token: &str, limit: i64) {
        let me = self.read(token, "/v1/me").await;
        let client_id = text(&me["app"], "client_id");
        let answer = self.adjust(&client_id, &json!({"rate_limit": limit})).await;
        answer.expect(200);
    }

    /// Revokes a personal token.
    pub async fn revoke_personal(&self, seller: &Seller, token: &PersonalToken) {
        let path = format!("/sellers/{}/personal-tokens/{}", seller.id, token.id);
        self.office_delete(&path).await.expect(204);
    }

    /// Changes an application's limit or scopes.
    pub async fn adjust(&self, client_id: &str, changes: &Value) -> Answer {
        self.office(Method::PATCH, &format!("/applications/{client_id}"))
            .json(changes)
            .send()
            .await
    }

    /// Feeds one offer and returns the answer, whatever it is.
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

    /// Feeds many offers as NDJSON.
    pub async fn import(&self, seller: &Seller, lines: impl Into<Vec<u8>>) -> Answer {
        let path = format!("/sellers/{}/offers:import", seller.id);
        let request = self
            .office(Method::POST, &path)
            .header("content-type", "application/x-ndjson");
        request.body(lines).send().await
    }
}

impl Drop for World {
    /// Whatever a test does, no secret of anybody is ever logged.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_no_secret(&self.server.log());
        }
    }
}

/// One JSON object over another: fields of the second win.
pub fn merged(mut under: Value, over: Value) -> Value {
    let (Some(fields), Value::Object(changes)) = (under.as_object_mut(), over) else {
        panic!("two objects are merged");
    };
    fields.extend(changes);
    under
}

/// A text of a JSON object.
#[track_caller]
pub fn text(json: &Value, field: &str) -> String {
    json[field]
        .as_str()
        .unwrap_or_else(|| panic!("no `{field}` in {json}"))
        .to_owned()
}
