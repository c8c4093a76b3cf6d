//! Access tokens: fetched once for all concurrent look-ups and renewed before they expire.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use reqwest::{Request, header::HeaderValue};
use tokio::sync;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tracing::Instrument as _;

use crate::apis::LookupFailure;
use crate::http::{Http, Response};

/// How long before its expiry a token is renewed. A token that lives less than twice as long is renewed at
/// half its life.
const RENEWAL_MARGIN: TimeDelta = TimeDelta::minutes(5);

/// Pause after a failed renewal, while the old token still works.
const RENEWAL_PAUSE: Duration = Duration::from_secs(30);

/// Parses an answer to a token request: its token, if it has one, or [`LookupFailure::Credentials`] if it rejects them by a
/// status other than 401.
pub(crate) type ReadToken = fn(&Response, DateTime<Utc>) -> Result<Option<Token>, LookupFailure>;

/// A token in the form of its header value.
#[derive(Debug)]
pub(crate) struct Token {
    /// Marked as sensitive, so that `Debug` hides it.
    pub(crate) header: HeaderValue,
    /// None if the carrier does not state it.
    pub(crate) expiry: Option<Expiry>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry {
    renew_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

impl Expiry {
    pub(crate) fn at(expires_at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let margin = RENEWAL_MARGIN.min((expires_at - now) / 2);
        Self {
            renew_at: expires_at - margin,
            expires_at,
        }
    }
}

/// One carrier's token, shared by its look-ups.
pub(crate) struct TokenCache {
    request: Request,
    read: ReadToken,
    http: Http,
    token: Mutex<Option<Arc<Token>>>,
    /// Locked during a fetch, so that there is only one at a time.
    last_failure: Arc<sync::Mutex<Option<LastFailure>>>,
}

struct LastFailure {
    failure: LookupFailure,
    at: Instant,
}

impl TokenCache {
    pub(crate) fn new(request: Request, read: ReadToken, http: Http) -> Arc<Self> {
        Arc::new(Self {
            request,
            read,
            http,
            token: Mutex::default(),
            last_failure: Arc::default(),
        })
    }

    /// Returns an unexpired token. While the old token works, a renewal runs in the background. Concurrent
    /// callers without a token share one fetch and its failure.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Arc<Token>, LookupFailure> {
        if let Some(token) = self.unexpired() {
            self.renew_if_due(&token);
            return Ok(token);
        }
        let began = Instant::now();
        let last_failure = Arc::clone(&self.last_failure).lock_owned().await;
        if let Some(token) = self.unexpired() {
            return Ok(token);
        }
        match &*last_failure {
            Some(last) if last.at >= began => Err(last.failure.clone()),
            _ => {
                let fetched = self.fetch(last_failure).await;
                fetched.unwrap_or_else(|error| Err(LookupFailure::Broken(error.to_string())))
            }
        }
    }

    /// Drops a token that the carrier rejected, unless another one has replaced it.
    pub(crate) fn invalidate(&self, rejected: &Arc<Token>) {
        self.token.lock().take_if(|token| Arc::ptr_eq(token, rejected));
    }

    fn unexpired(&self) -> Option<Arc<Token>> {
        let now = self.http.clock.now();
        let token = self.token.lock().clone()?;
        let is_valid = token.expiry.is_none_or(|expiry| now < expiry.expires_at);
        is_valid.then_some(token)
    }

    fn renew_if_due(self: &Arc<Self>, token: &Token) {
        let now = self.http.clock.now();
        if token.expiry.is_none_or(|expiry| now < expiry.renew_at) {
            return;
        }
        // If the lock is taken, a fetch is in flight.
        if let Ok(last_failure) = Arc::clone(&self.last_failure).try_lock_owned()
            && last_failure
                .as_ref()
                .is_none_or(|last| last.at.elapsed() >= RENEWAL_PAUSE)
        {
            drop(self.fetch(last_failure));
        }
    }

    /// Fetches a token in a task of its own, so that a caller that gives up does not end a fetch that others
    /// wait for.
    fn fetch(
        self: &Arc<Self>,
        mut last_failure: OwnedMutexGuard<Option<LastFailure>>,
    ) -> JoinHandle<Result<Arc<Token>, LookupFailure>> {
        let cache = Arc::clone(self);
        let fetch = async move {
            let fetched = timeout(cache.http.deadline, cache.request_token()).await;
            let fetched = fetched.unwrap_or(Err(LookupFailure::Timeout)).map(Arc::new);
            if let Ok(token) = &fetched {
                *cache.token.lock() = Some(Arc::clone(token));
            }
            let at = Instant::now();
            *last_failure = fetched.clone().err().map(|failure| LastFailure { failure, at });
            fetched
        };
        tokio::spawn(fetch.in_current_span())
    }

    async fn request_token(&self) -> Result<Token, LookupFailure> {
        // Fails only for streamed bodies.
        let request = self.request.try_clone();
        let request =
            request.ok_or_else(|| LookupFailure::Broken("the body cannot be sent again".to_owned()))?;
        let answer = self.http.exchange(request).await;
        let answer = answer.map_err(|failure| match failure {
            LookupFailure::Unauthorized => LookupFailure::Credentials,
            other => other,
        })?;
        let token = (self.read)(&answer, self.http.clock.now())?;
        if !answer.status.is_success() {
            return Err(LookupFailure::Status(answer.status.as_u16()));
        }
        token.ok_or(LookupFailure::Unreadable("no token"))
    }
}
