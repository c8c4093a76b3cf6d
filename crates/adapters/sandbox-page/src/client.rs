//! A built-in client that asks a seller for consent, step by step: authorization code with PKCE, exchange,
//! refresh, and a reuse that ends the family.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use kernel::Randomness;
use reqwest::Method;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use url::{Url, form_urlencoded};
use web::form::Form;

use crate::calls::{Answered, Body, By, Call};
use crate::inbox::{Check, accepted, list, made, see_other, text};
use crate::pages::{Frame, html};
use crate::{SandboxPage, SandboxSeller};

const PATH: &str = "/sandbox/client";
/// What came of the latest step.
const LATEST: &str = "/sandbox/client#latest";
/// Redirect addresses are https and public, in the sandbox too. Nobody answers here: the address goes from the
/// browser's bar into the page's form, as the guide advises for a program on one's own machine.
const REDIRECT: &str = "https://consent-walk.example/callback";
const SCOPES: [&str; 2] = ["offers:read", "orders:read"];

/// A lock that is held while a call is made: a form that is sent twice uses no code twice.
#[derive(Default)]
pub(crate) struct WalkedClient(Mutex<State>);

#[derive(Default)]
struct State {
    alert: String,
    walk: Option<Walk>,
}

/// One walk through the flow.
struct Walk {
    owner: usize,
    client_id: String,
    verifier: String,
    state: String,
    arrival: Option<Arrival>,
    /// Access and refresh token, by exchange and refresh.
    pairs: Vec<(String, String)>,
    done: Vec<Done>,
    /// A call that had another result than the step expects.
    failed: Option<Done>,
}

/// The browser's return.
struct Arrival {
    checks: Vec<Check>,
    code: String,
    /// `error`, its description, and what it means.
    refusal: Option<(String, String, &'static str)>,
}

impl Arrival {
    fn is_good(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// A call that was made.
struct Done {
    curl: String,
    status: u16,
    body: String,
}

/// A step after the browser's return.
struct Step {
    title: &'static str,
    about: &'static str,
    /// The status with which the walk goes on.
    expected: u16,
    call: fn(&Walk) -> Call,
}

const STEPS: [Step; 5] = [
    Step {
        title: "Exchange the code",
        about: "The client sends the code with its verifier, within ten minutes and once. Who has caught the code alone cannot: \
                only the client has the verifier.",
        expected: 200,
        call: Walk::exchange,
    },
    Step {
        title: "Call the API",
        about: "The access token lasts 12 hours. /v1/me tells whose account it is for, and what it may do.",
        expected: 200,
        call: Walk::me,
    },
    Step {
        title: "Refresh",
        about: "A refresh token works once and gives the next pair. Your program also sends an Idempotency-Key, so that a lost \
                answer costs nothing.",
        expected: 200,
        call: Walk::refresh,
    },
    Step {
        title: "Use the first refresh token again",
        about: "As a thief would, or a second process of yours. The answer is invalid_grant, its reason is used, and the whole \
                family of tokens ends.",
        expected: 400,
        call: Walk::refresh,
    },
    Step {
        title: "Call the API again",
        about: "The newest access token is dead too: 401. The seller has to consent again.",
        expected: 401,
        call: Walk::me,
    },
];

impl Walk {
    fn new(owner: usize, client_id: String, randomness: &dyn Randomness) -> Self {
        let random = || URL_SAFE_NO_PAD.encode(randomness.secret());
        let (verifier, state) = (random(), random());
        let (pairs, done) = (Vec::new(), Vec::new());
        Self {
            owner,
            client_id,
            verifier,
            state,
            arrival: None,
            pairs,
            done,
            failed: None,
        }
    }

    /// What the authorization request has: names, values, and what they are for.
    fn parameters(&self) -> [(&'static str, String, &'static str); 7] {
        [
            (
                "response_type",
                "code".to_owned(),
                "A code comes back, not a token.",
            ),
            ("client_id", self.client_id.clone(), "Which application asks."),
            (
                "redirect_uri",
                REDIRECT.to_owned(),
                "Where the browser returns: registered, character for character.",
            ),
            ("scope", SCOPES.join(" "), "What the client asks for."),
            (
                "state",
                self.state.clone(),
                "Comes back unchanged: the return belongs to this visitor's request.",
            ),
            (
                "code_challenge",
                challenge(&self.verifier),
                "The SHA-256 of the verifier, in base64url.",
            ),
            (
                "code_challenge_method",
                "S256".to_owned(),
                "How the challenge was made.",
            ),
        ]
    }

    fn authorize(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.parameters().iter().map(|(name, value, _)| (name, value)));
        format!("/oauth/authorize?{}", query.finish())
    }

    /// Takes what the browser came back with.
    fn arrive(&mut self, query: &Form, issuer: &str) {
        let sent = |name| query.get(name).unwrap_or_default().to_owned();
        let (code, error) = (sent("code"), sent("error"));
        let checks = vec![
            Check::new(
                sent("state") == self.state,
                format!("state is the one that was sent: {}", sent("state")),
            ),
            Check::new(
                sent("iss") == issuer,
                format!("iss is the issuer of the metadata: {}", sent("iss")),
            ),
            Check::new(!code.is_empty(), format!("There is a code: {}", shortened(&code))),
        ];
        let refusal = (!error.is_empty()).then(|| {
            let meaning = meaning(&error);
            (error, sent("error_description"), meaning)
        });
        self.arrival = Some(Arrival {
            checks,
            code,
            refusal,
        });
    }

    fn token(&self, fields: [(&'static str, &str); 4]) -> Call {
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let fields = fields.map(|(name, value)| (name, value.to_owned()));
        let identity = ("client_id", self.client_id.clone());
        Call {
            by: By::Nobody,
            method: Method::POST,
            path: "/oauth/token".to_owned(),
            body: Body::Form(fields.chain([identity]).collect()),
        }
    }

    fn exchange(&self) -> Call {
        let code = self.arrival.as_ref().map_or("", |arrival| &arrival.code);
        self.token([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", &self.verifier),
        ])
    }

    /// By the first refresh token, always.
    fn refresh(&self) -> Call {
        let token = self.pairs.first().map_or("", |(_, refresh)| refresh);
        self.token([
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("", ""),
            ("", ""),
        ])
    }

    /// By the newest access token.
    fn me(&self) -> Call {
        let token = self
            .pairs
            .last()
            .map_or_else(String::new, |(access, _)| access.clone());
        Call {
            by: By::Bearer(token),
            method: Method::GET,
            path: "/v1/me".to_owned(),
            body: Body::None,
        }
    }

    /// Each step with its call, if that was made.
    fn steps(&self) -> impl Iterator<Item = (&'static Step, Option<&Done>)> {
        STEPS.iter().enumerate().map(|(n, step)| (step, self.done.get(n)))
    }

    /// The step that comes next, once the browser is back with a code.
    fn next(&self) -> Option<&'static Step> {
        self.arrival.as_ref().filter(|arrival| arrival.is_good())?;
        STEPS.get(self.done.len())
    }

    fn take(&mut self, step: &Step, curl: String, answered: &Answered) {
        let done = Done {
            curl,
            status: answered.status,
            body: shortened(&answered.pretty()),
        };
        if answered.status != step.expected {
            self.failed = Some(done);
            return;
        }
        self.failed = None;
        self.done.push(done);
        let json = answered.json();
        let pair = ["access_token", "refresh_token"].map(|name| text(&json, name).to_owned());
        if pair.iter().all(|token| !token.is_empty()) {
            self.pairs.push(pair.into());
        }
    }
}

/// base64url(SHA-256(verifier)) without padding (RFC 7636 §4.2).
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

/// A text with the beginnings of its secrets alone.
fn shortened(text: &str) -> String {
    let parts = text.split('"').map(|part| match part.split_at_checked(12) {
        Some((start, rest)) if part.starts_with("ps_") && !rest.is_empty() => format!("{start}…"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("\"")
}

fn meaning(error: &str) -> &'static str {
    match error {
        "access_denied" => {
            "The seller refused, or the application may not ask this seller. Tell the person, and let them begin anew."
        }
        "invalid_scope" => "The application asks for a scope that it does not have, or that does not exist.",
        "unsupported_response_type" => "Only the code flow exists.",
        _ => "The request is wrong: the description says how.",
    }
}

#[derive(Template)]
#[template(path = "client.html")]
struct ClientPage<'a> {
    frame: Frame,
    sellers: &'a [SandboxSeller],
    alert: &'a str,
    walk: Option<&'a Walk>,
    registration: String,
    /// Who may be asked: another seller than the owner, if there is one.
    asked: Option<&'a SandboxSeller>,
    next_curl: String,
}

/// `GET /sandbox/client`: how far the walk is. A redirect of the consent screen may end here, too.
pub(crate) async fn walk(page: &SandboxPage, query: &Form) -> HttpResponse {
    let settings = &page.shared.settings;
    let mut state = page.shared.client.0.lock().await;
    if let Some(walk) = state.walk.as_mut()
        && walk.done.is_empty()
        && is_return(query)
    {
        walk.arrive(query, &settings.service.public_url);
        return see_other(LATEST);
    }
    let walk = state.walk.as_ref();
    let owner = walk.map_or(0, |walk| walk.owner);
    let mut others = settings.sellers.iter().enumerate().filter(|(n, _)| *n != owner);
    let registration = settings
        .sellers
        .first()
        .map(|seller| registration(seller).curl(settings));
    let next = walk.and_then(|walk| Some((walk.next()?.call)(walk).curl(settings)));
    let shown = ClientPage {
        frame: page.frame("Consent", PATH),
        sellers: &settings.sellers,
        alert: &state.alert,
        walk,
        registration: registration.unwrap_or_default(),
        asked: others
            .next()
            .map(|(_, seller)| seller)
            .or(settings.sellers.first()),
        next_curl: next.unwrap_or_default(),
    };
    html(StatusCode::OK, &shown)
}

/// `POST /sandbox/client`: takes a step.
pub(crate) async fn step(page: &SandboxPage, form: &Form) -> HttpResponse {
    let settings = &page.shared.settings;
    let mut state = page.shared.client.0.lock().await;
    let state = &mut *state;
    let done = match (form.get("step").unwrap_or_default(), state.walk.as_mut()) {
        ("register", _) => register(page, page.seller(form))
            .await
            .map(|walk| state.walk = Some(walk)),
        ("return", Some(walk)) => returned(form.get("address").unwrap_or_default())
            .map(|query| walk.arrive(&query, &settings.service.public_url)),
        ("next", Some(walk)) => match walk.next() {
            // A form that was sent twice has had its step.
            Some(step) if form.get("done") == Some(&walk.done.len().to_string()) => {
                let call = (step.call)(walk);
                let answer = page.shared.calls.make(settings, &call).await;
                answer.map(|answered| walk.take(step, call.curl(settings), &answered))
            }
            _ => Ok(()),
        },
        _ => {
            state.walk = None;
            Ok(())
        }
    };
    state.alert = done.err().unwrap_or_default();
    see_other(if state.alert.is_empty() { LATEST } else { PATH })
}

fn is_return(query: &Form) -> bool {
    query.get("code").is_some() || query.get("error").is_some()
}

/// The query of the address that a person copied.
fn returned(address: &str) -> Result<Form, String> {
    let url = Url::parse(address.trim()).ok();
    let query = url.and_then(|url| Form::parse(url.query()?.as_bytes()).ok());
    query
        .filter(is_return)
        .ok_or_else(|| format!("Copy the whole address from the browser's bar: it begins with {REDIRECT}?"))
}

/// The name is the same in each run: an accepted name stays taken for good.
fn name(seller: &SandboxSeller) -> String {
    format!("Consent walk {}", seller.seller_no)
}

fn registration(seller: &SandboxSeller) -> Call {
    let body = json!({
        "name": name(seller),
        "documentation_url": "https://consent-walk.example/docs",
        "purpose": "for_other_sellers",
        "client_type": "public",
        "redirect_uris": [REDIRECT],
        "scopes": SCOPES,
        "accept_terms": true,
    });
    Call::by_office(
        Method::POST,
        format!("/sellers/{}/applications", seller.id),
        Body::Json(body),
    )
}

/// Takes the seller's application of an earlier run, or registers it; and accepts it.
async fn register(page: &SandboxPage, owner: (usize, Option<&SandboxSeller>)) -> Result<Walk, String> {
    let settings = &page.shared.settings;
    let (n, Some(seller)) = owner else {
        return Err("The sandbox has no sellers.".to_owned());
    };
    let path = format!("/sellers/{}/applications?limit=100", seller.id);
    let listed = page
        .shared
        .calls
        .read(settings, By::Office, path)
        .await
        .and_then(accepted)?;
    let mut all = list::<Value>(&listed).into_iter();
    let application = match all.find(|application| text(application, "name") == name(seller)) {
        Some(application) => application,
        None => made(page, &registration(seller)).await?.json(),
    };
    let client_id = text(&application, "client_id").to_owned();
    if text(&application, "status") != "active" {
        let path = format!("/applications/{client_id}/acceptance");
        made(page, &Call::by_office(Method::POST, path, Body::None)).await?;
    }
    Ok(Walk::new(n, client_id, settings.randomness.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk() -> Walk {
        let (verifier, state) = ("v".to_owned(), "the state".to_owned());
        let client_id = "psa_1".to_owned();
        let (pairs, done) = (Vec::new(), Vec::new());
        Walk {
            owner: 0,
            client_id,
            verifier,
            state,
            arrival: None,
            pairs,
            done,
            failed: None,
        }
    }

    fn answered(status: u16, body: &str) -> Answered {
        Answered {
            status,
            trace_id: None,
            body: body.to_owned(),
        }
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn only_the_own_request_goes_on() {
        let issuer = "http://127.0.0.1:8080";
        for (query, expected) in [
            ("code=ps_ac_1&state=the+state&iss=http://127.0.0.1:8080", true),
            ("code=ps_ac_1&state=another&iss=http://127.0.0.1:8080", false),
            ("code=ps_ac_1&state=the+state", false),
            (
                "error=access_denied&state=the+state&iss=http://127.0.0.1:8080",
                false,
            ),
        ] {
            let mut walk = walk();
            walk.arrive(&returned(&format!(" {REDIRECT}?{query}\n")).unwrap(), issuer);
            assert_eq!(walk.next().is_some(), expected, "{query}");
            let arrival = walk.arrival.unwrap();
            assert_eq!(arrival.refusal.is_some(), query.starts_with("error"), "{query}");
        }
        for copied in ["", "ps_ac_1", REDIRECT, "https://consent-walk.example/?state=1"] {
            assert!(returned(copied).is_err(), "{copied}");
        }
    }

    #[test]
    fn a_reuse_sends_the_first_refresh_token_and_a_failure_keeps_its_step() {
        let mut walk = walk();
        let pair = |n| format!(r#"{{"access_token":"ps_at_{n}56789012345","refresh_token":"ps_rt_{n}"}}"#);
        walk.take(&STEPS[0], String::new(), &answered(400, "{}"));
        assert_eq!(
            (walk.done.len(), walk.failed.as_ref().map(|failed| failed.status)),
            (0, Some(400))
        );
        walk.take(&STEPS[0], String::new(), &answered(200, &pair(1)));
        assert!(walk.failed.is_none());
        assert!(
            walk.done[0].body.contains("\"ps_at_156789…\""),
            "{}",
            walk.done[0].body
        );
        let refresh = walk.refresh();
        walk.take(&STEPS[2], String::new(), &answered(200, &pair(2)));
        assert_eq!(walk.refresh(), refresh);
        assert_eq!(walk.me().by, By::Bearer("ps_at_256789012345".to_owned()));
    }
}
