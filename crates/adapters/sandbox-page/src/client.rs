//! A built-in client that asks a seller for consent, step by step: authorization code with PKCE, exchange,
//! refresh, and a reuse that ends the family.

use askama::Template;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Method;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use web::form::Form;

use crate::calls::{Answered, By, Call, text};
use crate::inbox::Check;
use crate::pages::{Frame, PageRefusal, Shown, html, see_other};
use crate::{SandboxPage, Settings};

const PATH: &str = "/sandbox/client";
/// The statuses of the answers after which the walk goes on; the last call comes after them.
const ANSWERS: [u16; 4] = [200, 200, 200, 400];

/// One walk through the flow.
#[derive(Default)]
pub(crate) struct Walk {
    client_id: String,
    redirect_uri: String,
    verifier: String,
    state: String,
    /// Of what the browser came back with; empty before.
    checks: Vec<Check>,
    code: String,
    made: Vec<(Call, Answered)>,
}

impl Walk {
    /// With a verifier and a state of its own.
    pub(crate) fn begin(settings: &Settings) -> Self {
        let [verifier, state] = [(); 2].map(|()| URL_SAFE_NO_PAD.encode(settings.randomness.secret()));
        Self {
            client_id: settings.client_id.clone(),
            redirect_uri: format!("{}{PATH}", settings.api_url),
            verifier,
            state,
            ..Self::default()
        }
    }

    /// base64url(SHA-256(verifier)) without padding (RFC 7636 §4.2).
    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.as_bytes()))
    }

    /// Takes what the browser came back with.
    fn arrive(&mut self, query: &Form, issuer: &str) {
        let sent = |name| query.get(name).unwrap_or_default();
        let shown = |name| format!("{name}: {}", query.get(name).unwrap_or("none"));
        sent("code").clone_into(&mut self.code);
        self.checks = vec![
            (sent("error").is_empty(), shown("error")),
            (sent("error").is_empty(), shown("error_description")),
            (sent("state") == self.state, shown("state")),
            (sent("iss") == issuer, shown("iss")),
            (!self.code.is_empty(), shown("code")),
        ];
    }

    /// A token of the nth answer.
    fn token(&self, n: usize, name: &str) -> String {
        let answer = self.made.get(n).map(|(_, answered)| answered.json());
        text(&answer.unwrap_or_default(), name).to_owned()
    }

    /// The call that comes next, once the browser is back with a code; None after another answer than expected.
    fn next(&self) -> Option<Call> {
        let is_expected = |((_, answered), status): (&(_, Answered), _)| answered.status == status;
        let goes_on = self.made.iter().zip(ANSWERS).all(is_expected);
        if !goes_on || self.checks.is_empty() || self.checks.iter().any(|(holds, _)| !holds) {
            return None;
        }
        let grant = |form| Call::new(By::Nobody, Method::POST, "/oauth/token", form);
        let me = |n| {
            let by = By::Bearer(self.token(n, "access_token"));
            Call::new(by, Method::GET, "/v1/me", Value::Null)
        };
        Some(match self.made.len() {
            0 => grant(json!({
                "grant_type": "authorization_code", "client_id": self.client_id, "code": self.code,
                "redirect_uri": self.redirect_uri, "code_verifier": self.verifier,
            })),
            1 => me(0),
            2 | 3 => grant(json!({
                "grant_type": "refresh_token", "client_id": self.client_id,
                "refresh_token": self.token(0, "refresh_token"),
            })),
            4 => me(2),
            _ => return None,
        })
    }
}

#[derive(Template)]
#[template(path = "client.html")]
struct ClientPage<'a> {
    frame: Frame<'a>,
    walk: &'a Walk,
    next: Option<Call>,
}

/// `GET /sandbox/client`: how far the walk is, and with `code` or `error` the browser's return.
pub(crate) async fn walk(page: &SandboxPage, query: &Form) -> Shown {
    let mut walk = page.client.lock().await;
    if let Some(state) = query.get("state") {
        // Anybody may link here: only the answer to the own request counts.
        if state != walk.state {
            let sentence = "This answer belongs to another request: its state is not the one that was sent. Ask again on Consent.";
            return Err(PageRefusal::bad(sentence));
        }
        if walk.made.is_empty() {
            walk.arrive(query, &page.settings.service.public_url);
        }
        return Ok(see_other(&format!("{PATH}#latest")));
    }
    Ok(html(&ClientPage {
        frame: page.frame("Consent"),
        walk: &walk,
        next: walk.next(),
    }))
}

/// `POST /sandbox/client`: makes the call that comes next, or starts over.
pub(crate) async fn step(page: &SandboxPage, form: &Form) -> Shown {
    let mut walk = page.client.lock().await;
    // A form that was sent twice has had its step.
    let is_due = form.get("made") == Some(&walk.made.len().to_string());
    if form.get("step") != Some("next") {
        *walk = Walk::begin(&page.settings);
    } else if let Some(call) = walk.next().filter(|_| is_due) {
        let answered = page.make(&call).await?;
        walk.made.push((call, answered));
    }
    Ok(see_other(&format!("{PATH}#latest")))
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    fn answered(status: u16, body: &str) -> Answered {
        Answered {
            status: StatusCode::from_u16(status).unwrap(),
            trace_id: None,
            body: body.to_owned(),
        }
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let challenge = Walk {
            verifier,
            ..Walk::default()
        }
        .challenge();
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn only_the_return_of_the_own_request_goes_on() {
        for (query, expected) in [
            ("code=ps_ac_1&state=the+state&iss=http://a", true),
            ("code=ps_ac_1&state=another&iss=http://a", false),
            ("code=ps_ac_1&state=the+state", false),
            ("error=access_denied&state=the+state&iss=http://a", false),
        ] {
            let mut walk = Walk {
                state: "the state".to_owned(),
                ..Walk::default()
            };
            assert_eq!(walk.next(), None);
            walk.arrive(&Form::parse(query.as_bytes()).unwrap(), "http://a");
            assert_eq!(walk.next().is_some(), expected, "{query}");
        }
    }

    #[test]
    fn a_reuse_sends_the_first_refresh_token() {
        let pair = |n| format!(r#"{{"access_token":"ps_at_{n}","refresh_token":"ps_rt_{n}"}}"#);
        let mut walk = Walk {
            checks: vec![(true, String::new())],
            ..Walk::default()
        };
        for answer in [
            answered(200, &pair(1)),
            answered(200, "{}"),
            answered(200, &pair(2)),
            answered(400, "{}"),
        ] {
            walk.made.push((walk.next().unwrap(), answer));
        }
        assert_eq!(walk.made[2].0, walk.made[3].0);
        assert_eq!(walk.next().unwrap().by, By::Bearer("ps_at_2".to_owned()));
        // After any other answer it does not go on.
        for n in (0..4).rev() {
            walk.made.truncate(n + 1);
            walk.made[n].1 = answered(503, &pair(1));
            assert_eq!(walk.next(), None, "{n}");
        }
    }
}
