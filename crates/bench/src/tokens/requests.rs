//! What the load asks of `POST /oauth/token`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use serde_json::Value;

use crate::back_office::Seller;
use crate::requests::{Requests, Source, any_of, form};

const PATH: &str = "/oauth/token";

/// A token for any of the applications, by its secret.
pub(super) fn client_credentials(sellers: &[Seller]) -> Requests {
    let request = |seller: &Seller| {
        let credentials = credentials(seller);
        form(PATH, &format!("grant_type=client_credentials&{credentials}"))
    };
    any_of(sellers.iter().map(request).collect())
}

/// Identifiers and secrets are of letters, digits and signs that a form has as they are.
fn credentials(seller: &Seller) -> String {
    format!(
        "client_id={}&client_secret={}",
        seller.client_id, seller.client_secret
    )
}

/// Refreshes: every connection has a family of its own, and sends what it was given last.
#[derive(Debug)]
pub(super) struct Refreshes(Vec<Arc<Chain>>);

impl Refreshes {
    /// `tokens` are the live refresh tokens of as many families, dealt to the sellers' applications in turn.
    pub(super) fn of_all(sellers: &[Seller], tokens: Vec<String>) -> Requests {
        let chains = sellers.iter().cycle().zip(tokens);
        let chain = |(seller, token): (&Seller, String)| {
            Arc::new(Chain {
                credentials: credentials(seller),
                token: Mutex::new(token),
            })
        };
        Arc::new(Self(chains.map(chain).collect()))
    }
}

impl Source for Refreshes {
    fn write(&self, _: &mut fastrand::Rng, _: &mut Vec<u8>) -> anyhow::Result<()> {
        anyhow::bail!("there are more connections than families")
    }

    fn of_connection(&self, n: usize) -> Option<Requests> {
        let chain: Requests = self.0.get(n)?.clone();
        Some(chain)
    }
}

/// One family's refresh tokens, one after another.
#[derive(Debug)]
struct Chain {
    credentials: String,
    /// The live one.
    token: Mutex<String>,
}

impl Chain {
    fn token(&self) -> MutexGuard<'_, String> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Chain {
    fn write(&self, _: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let (credentials, token) = (&self.credentials, self.token());
        let body = format!("grant_type=refresh_token&{credentials}&refresh_token={token}");
        *into = form(PATH, &body);
        Ok(())
    }

    fn answered(&self, body: &[u8]) -> anyhow::Result<()> {
        let answer: Value = serde_json::from_slice(body)?;
        let next = answer.get("refresh_token").and_then(Value::as_str);
        next.context("a refresh gave no refresh token")?
            .clone_into(&mut self.token());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::of_connection;

    fn seller(n: u32) -> Seller {
        Seller {
            id: String::new(),
            token: String::new(),
            client_id: format!("psa_{n}"),
            client_secret: format!("s{n}"),
        }
    }

    fn written(requests: &Requests) -> anyhow::Result<String> {
        let mut request = Vec::new();
        requests.write(&mut fastrand::Rng::with_seed(1), &mut request)?;
        Ok(String::from_utf8(request)?)
    }

    #[test]
    fn an_application_shows_its_secret() {
        let request = written(&client_credentials(&[seller(7)])).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            body,
            "grant_type=client_credentials&client_id=psa_7&client_secret=s7"
        );
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
    }

    #[test]
    fn every_connection_sends_what_its_family_was_given_last() {
        let tokens = ["a0", "b0", "c0"].map(str::to_owned).to_vec();
        let all = Refreshes::of_all(&[seller(0), seller(1)], tokens);
        let third = of_connection(&all, 2);
        assert!(
            written(&third)
                .unwrap()
                .ends_with("client_id=psa_0&client_secret=s0&refresh_token=c0")
        );
        third.answered(br#"{"refresh_token":"c1"}"#).unwrap();
        // The next load's third connection goes on.
        assert!(written(&of_connection(&all, 2)).unwrap().ends_with("=c1"));
        assert!(written(&of_connection(&all, 1)).unwrap().ends_with("=b0"));
        assert!(third.answered(b"{}").is_err());
        assert!(written(&of_connection(&all, 3)).is_err());
    }
}
