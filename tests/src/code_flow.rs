//! The authorization code flow, step by step, for an integrator's program and a seller's browser.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::forms::{Form, encoded};
use crate::{Application, Expect, Page, Seller, Visitor, Wire, World, documented, request_with_body, text};

/// The redirect URI of [`World::partner`].
pub const CALLBACK: &str = "https://app.example/callback";
/// The password of every [`Member`].
pub const PASSWORD: &str = "correct horse battery";

/// A seller who can sign in.
#[derive(Debug, Clone)]
pub struct Member {
    pub seller: Seller,
    /// A browser in which the seller is signed in.
    pub browser: Visitor,
}

impl Member {
    /// The form that registers an application, filled in.
    pub async fn registration(&mut self, name: &str) -> Form {
        let form = self.browser.form("/panel/applications/new").await;
        form.with("name", name)
            .with("documentation_url", "https://docs.example/labels")
            .with("purpose", "own_use")
            .with("client_type", "confidential")
            .with("scopes", "offers:read")
            .with("accept_terms", "true")
    }
}

/// An authorization request, to be completed and sent.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The parameters in order.
    pub parameters: Vec<(String, String)>,
    /// The PKCE verifier of its challenge.
    pub verifier: String,
}

/// The redirect to the application.
#[derive(Debug, Clone)]
pub struct Callback {
    /// The whole URI.
    pub address: String,
    /// The query parameters.
    pub parameters: Vec<(String, String)>,
}

/// An access and a refresh token.
#[derive(Debug, Clone)]
pub struct Pair {
    pub access: String,
    pub refresh: String,
    pub scope: String,
}

impl Member {
    /// The secret of the browser's session.
    pub fn session(&self) -> String {
        let mut values = self.browser.cookies.values();
        values
            .find(|value| value.starts_with("ps_se_"))
            .expect("a session")
            .clone()
    }
}

impl Asking {
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// Adds a parameter, even if it is set already.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a parameter.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.parameters.retain(|(other, _)| other != name);
        self
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(other, _)| other == name);
        &found.expect("it is there").1
    }

    /// The form fields that exchange the resulting code.
    pub fn exchanging<'a>(&'a self, code: &'a str) -> [(&'a str, &'a str); 4] {
        [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", &self.verifier),
        ]
    }

    pub fn path(&self) -> String {
        format!("/oauth/authorize?{}", encoded(&self.parameters))
    }
}

impl Callback {
    /// Parses the redirect of an answer, and records its error if it has one.
    #[track_caller]
    pub fn of(answer: &Answer) -> Self {
        assert!(matches!(answer.status, 302 | 303), "{answer:?}");
        let address = answer.must("location").to_owned();
        let query = address.split_once('?').map_or("", |(_, query)| query);
        let parameters = url::form_urlencoded::parse(query.as_bytes());
        let callback = Self {
            parameters: parameters.into_owned().collect(),
            address,
        };
        if let Some(error) = callback.get("error") {
            documented::returned(error);
        }
        callback
    }

    /// The value of a parameter; `None` if it is missing.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.parameters.iter().filter(|(other, _)| other == name);
        let found = named.next().map(|(_, value)| value.as_str());
        assert!(named.next().is_none(), "{name} is there once: {self:?}");
        found
    }

    #[track_caller]
    pub fn code(&self) -> String {
        self.get("code")
            .unwrap_or_else(|| panic!("no code in {self:?}"))
            .to_owned()
    }
}

impl Pair {
    /// Parses the answer of the token endpoint.
    #[track_caller]
    pub fn of(answer: Answer) -> Self {
        let json = answer.expect(200).json();
        let text = |name: &str| json[name].as_str().unwrap_or_else(|| panic!("{json}")).to_owned();
        Self {
            access: text("access_token"),
            refresh: text("refresh_token"),
            scope: text("scope"),
        }
    }
}

/// The form fields of a refresh.
pub fn refreshing(token: &str) -> [(&str, &str); 2] {
    [("grant_type", "refresh_token"), ("refresh_token", token)]
}

/// The challenge of a verifier (RFC 7636 §4.2).
pub fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

impl World {
    /// A fresh browser, not signed in.
    pub fn visitor(&self) -> Visitor {
        Visitor::new(&self.client, &self.server.base_url)
    }

    /// Signs in from a fresh browser; asserts the status.
    pub async fn sign_in(&self, email: &str, password: &str, status: u16) -> Page {
        self.visitor().sign_in(email, password).await.expect(status)
    }

    /// A registered seller with a password, signed in.
    pub async fn member(&self) -> Member {
        let seller = self.registered(json!({"password": PASSWORD})).await;
        let browser = self.browser_of(&seller).await;
        Member { seller, browser }
    }

    /// A fresh browser in which the seller, a member, is signed in.
    pub async fn browser_of(&self, seller: &Seller) -> Visitor {
        let mut browser = self.visitor();
        browser.sign_in(&seller.email, PASSWORD).await.expect(200);
        browser
    }

    /// The path of a sign-in link for a seller.
    pub async fn sign_in_link(&self, seller: &Seller) -> String {
        let path = format!("/sellers/{}/sign-in-links", seller.id);
        self.path_of(&self.office_made(&path, &json!({})).await)
    }

    /// The path of the field `url`, which must point to the public listener.
    pub fn path_of(&self, made: &Value) -> String {
        let url = text(made, "url");
        url.strip_prefix(&self.server.base_url)
            .expect("a URL of ours")
            .to_owned()
    }

    /// The path of a consent screen that is not opened yet.
    pub async fn unseen_screen(&self, asking: &Asking) -> String {
        let answer = self.visit(&asking.path()).await.expect(302);
        self.path_of(&json!({"url": answer.must("location")}))
    }

    /// An active confidential application for other sellers, with [`CALLBACK`].
    pub async fn partner(&self, owner: &Seller, scopes: &[&str]) -> Application {
        self.partner_of_type(owner, "confidential", scopes).await
    }

    /// Like [`Self::partner`], as a public client.
    pub async fn public_partner(&self, owner: &Seller, scopes: &[&str]) -> Application {
        self.partner_of_type(owner, "public", scopes).await
    }

    async fn partner_of_type(&self, owner: &Seller, client_type: &str, scopes: &[&str]) -> Application {
        let changes = json!({
            "purpose": "for_other_sellers", "client_type": client_type, "redirect_uris": [CALLBACK], "scopes": scopes,
            "description": "for the owner alone",
        });
        let application = self.register(owner, changes).await;
        self.moved(&application, "acceptance").await;
        application
    }

    /// A valid authorization request with a unique verifier and state.
    pub fn asking(&self, application: &Application, scope: &str) -> Asking {
        let number = self.next_number();
        let verifier = format!("verifier-{number:0>40}");
        let parameters = [
            ("response_type", "code"),
            ("client_id", &application.client_id),
            ("redirect_uri", CALLBACK),
            ("scope", scope),
            ("state", &format!("state-{number:0>8}")),
            ("code_challenge", &challenge(&verifier)),
            ("code_challenge_method", "S256"),
        ];
        Asking {
            parameters: parameters
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            verifier,
        }
    }

    /// The consent screen that a signed-in seller gets for a request.
    pub async fn screen(&self, browser: &mut Visitor, asking: &Asking) -> Page {
        let page = browser.open(&asking.path()).await.expect(200);
        let is_screen = page.path.starts_with("/panel/consent?");
        assert!(is_screen, "{}: {}", page.path, page.html);
        page
    }

    /// Opens the consent screen and submits the seller's decision: `approve` or `deny`.
    pub async fn decided(&self, browser: &mut Visitor, asking: &Asking, decision: &str) -> Callback {
        let page = self.screen(browser, asking).await;
        let form = page.form("/panel/consent").press("decision", decision);
        Callback::of(&browser.post(&form).await)
    }

    /// A code that the seller has approved.
    pub async fn code(&self, browser: &mut Visitor, asking: &Asking) -> String {
        self.decided(browser, asking, "approve").await.code()
    }

    /// A form request to an endpoint below `/oauth`, with the application's credentials.
    pub fn oauth_request(
        &self,
        application: &Application,
        endpoint: &str,
        fields: &[(&str, &str)],
    ) -> Request {
        self.oauth_request_at(&self.server.base_url, application, endpoint, fields)
    }

    /// Like [`Self::oauth_request`], to the process at `base_url`.
    pub fn oauth_request_at(
        &self,
        base_url: &str,
        application: &Application,
        endpoint: &str,
        fields: &[(&str, &str)],
    ) -> Request {
        let mut fields = fields.to_vec();
        fields.push(("client_id", &application.client_id));
        // A parameter without a value counts as omitted, which suits a public client.
        fields.push(("client_secret", &application.client_secret));
        let url = format!("{base_url}/oauth/{endpoint}");
        self.client.post(&url).form(&encoded(&fields))
    }

    /// Posts a form to an endpoint below `/oauth`, with the application's credentials.
    pub async fn oauth(&self, application: &Application, endpoint: &str, fields: &[(&str, &str)]) -> Answer {
        let request = self.oauth_request(application, endpoint, fields);
        request.send().await
    }

    /// Sends a grant to the token endpoint on a new connection, and does not wait for the answer.
    pub async fn grant_on_wire(&self, application: &Application, grant: &[(&str, &str)]) -> Wire {
        let client = [
            ("client_id", application.client_id.as_str()),
            ("client_secret", &application.client_secret),
        ];
        let form = encoded(&[grant, &client].concat());
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let mut wire = Wire::connect(&self.server.base_url).await;
        wire.send(request_with_body("POST", "/oauth/token", &[kind], &form))
            .await;
        wire
    }

    /// Resets a connection to a server with one thread. That thread notices it before it answers another
    /// connection.
    pub async fn reset(&self, wire: Wire) {
        wire.reset();
        self.visit("/openapi.json").await.expect(200);
    }

    pub async fn exchange(&self, application: &Application, asking: &Asking, code: &str) -> Answer {
        self.oauth(application, "token", &asking.exchanging(code)).await
    }

    pub async fn refresh(&self, application: &Application, token: &str) -> Answer {
        self.oauth(application, "token", &refreshing(token)).await
    }

    /// Refreshes a pair; asserts success.
    pub async fn refreshed(&self, application: &Application, token: &str) -> Pair {
        Pair::of(self.refresh(application, token).await)
    }

    /// Asserts that a refresh is rejected.
    pub async fn no_refresh(&self, application: &Application, token: &str, error: &str) {
        is_oauth_refusal(&self.refresh(application, token).await, error);
    }

    /// Asserts that an exchange is rejected.
    pub async fn no_exchange(&self, application: &Application, asking: &Asking, code: &str, error: &str) {
        is_oauth_refusal(&self.exchange(application, asking, code).await, error);
    }

    pub async fn revoke(&self, application: &Application, token: &str) -> Answer {
        self.oauth(application, "revoke", &[("token", token)]).await
    }

    /// The whole flow from the authorization request to a pair.
    pub async fn pair(&self, browser: &mut Visitor, application: &Application, scope: &str) -> Pair {
        let asking = self.asking(application, scope);
        let code = self.code(browser, &asking).await;
        Pair::of(self.exchange(application, &asking, &code).await)
    }

    /// Whether an access token works; asserts 200 or 401.
    pub async fn works(&self, access: &str) -> bool {
        match self.get(access, "/v1/me").await.status {
            200 => true,
            401 => false,
            other => panic!("{other} is neither"),
        }
    }

    /// Asserts that both tokens of a pair are invalid.
    pub async fn has_ended(&self, application: &Application, pair: &Pair) {
        self.refuses(&pair.access, "/v1/me", 401, "unauthorized").await;
        self.no_refresh(application, &pair.refresh, "invalid_grant").await;
    }
}

fn is_oauth_refusal(answer: &Answer, error: &str) {
    let is_clients = error.starts_with("invalid_client");
    answer.oauth_error(if is_clients { 401 } else { 400 }, error);
}
