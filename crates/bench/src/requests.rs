//! The requests of a load, prepared so that making one costs next to nothing.

mod offers;
mod template;

use std::fmt::Debug;
use std::sync::Arc;

pub(crate) use offers::Offers;
pub(crate) use template::Template;

/// Makes requests, for all connections of a load at once.
pub(crate) trait Source: Debug + Send + Sync {
    /// Makes the next request in place of what `into` holds. Fails where there is nothing left to ask for.
    fn write(&self, random: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()>;

    /// What the n-th connection sends, from 0, where that is not what all send.
    fn of_connection(&self, _n: usize) -> Option<Requests> {
        None
    }

    /// Hears what the last request was answered; for sources of one connection, since others cannot tell whose answer it is.
    fn answered(&self, _body: &[u8]) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What connections send; cheap to clone.
pub(crate) type Requests = Arc<dyn Source>;

/// Requests of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    /// What is sent.
    pub(crate) requests: Requests,
    /// The status that answers each.
    pub(crate) expected: u16,
    /// Where it is sent.
    pub(crate) listener: Listener,
}

/// Which of a server's listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// That of sellers and their applications.
    Public,
    /// The marketplace's.
    BackOffice,
}

impl Calls {
    /// Calls of the public listener.
    pub(crate) fn public(requests: Requests, expected: u16) -> Self {
        Self {
            requests,
            expected,
            listener: Listener::Public,
        }
    }

    /// Calls of the back office.
    pub(crate) fn back_office(requests: Requests, expected: u16) -> Self {
        Self {
            listener: Listener::BackOffice,
            ..Self::public(requests, expected)
        }
    }
}

/// What the n-th connection of a load sends.
pub(crate) fn of_connection(requests: &Requests, n: usize) -> Requests {
    requests.of_connection(n).unwrap_or_else(|| Arc::clone(requests))
}

/// `GET path` with any of the tokens.
pub(crate) fn get_any(path: &str, tokens: &[&str]) -> Requests {
    any_of(tokens.iter().map(|token| get(path, token)).collect())
}

/// One of several whole requests, at random.
pub(crate) fn any_of(requests: Vec<Vec<u8>>) -> Requests {
    Arc::new(AnyOf(requests))
}

#[derive(Debug)]
struct AnyOf(Vec<Vec<u8>>);

impl Source for AnyOf {
    fn write(&self, random: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let choice = random.usize(0..self.0.len());
        into.clear();
        into.extend_from_slice(self.0.get(choice).map_or(&[], Vec::as_slice));
        Ok(())
    }
}

/// A whole GET request.
pub(crate) fn get(path: &str, token: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json\r\n\r\n"
    )
    .into_bytes()
}

/// A whole request of a form, as clients send it to a token endpoint (RFC 6749 §4.4.2).
pub(crate) fn form(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\nAccept: application/json\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A whole request with a JSON body and an `Idempotency-Key`.
pub(crate) fn keyed(method: &str, path: &str, token: &str, key: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_chosen() {
        let requests = get_any("/v1/me", &["a", "b"]);
        let mut seen = std::collections::BTreeSet::new();
        let mut request = Vec::new();
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            requests.write(&mut random, &mut request).unwrap();
            seen.insert(request.clone());
        }
        assert_eq!(seen, [get("/v1/me", "a"), get("/v1/me", "b")].into());
    }
}
