//! Tokens of carriers that want one: fetched once for everybody who waits, renewed before they expire.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared as SharedFuture},
};
use reqwest::{Request, StatusCode, header::HeaderValue};
use tracing::Instrument;

use super::{Failure, Shared, spans};

/// How long before its end a token is renewed. One that lives shorter than twice as long is renewed at half its life.
const MARGIN: TimeDelta = TimeDelta::minutes(5);

/// How long a token that still works is used before another attempt to renew it, after one that failed.
const RENEWAL_PAUSE: TimeDelta = TimeDelta::seconds(30);

/// Where a carrier's tokens come from.
pub(crate) trait TokenSource: Send + Sync {
    /// The request for a token.
    fn request(&self) -> Request;

    /// Whether an answer with another status than 401 refuses the credentials too.
    fn is_refusal(&self, status: StatusCode, body: &[u8]) -> bool;

    /// The token in a successful answer.
    fn read(&self, body: &[u8], now: DateTime<Utc>) -> Option<Token>;
}

/// A token that a carrier gave.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// The header's value that carries it; never shown.
    pub(crate) header: HeaderValue,
    /// When it ends, where the carrier tells.
    pub(crate) life: Option<Life>,
}

/// How long a token is good.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    renew_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
}

impl Life {
    pub(crate) fn until(ends_at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let margin = MARGIN.min((ends_at - now) / 2);
        Self {
            renew_at: ends_at - margin,
            ends_at,
        }
    }
}

/// A carrier's token, held for everybody.
#[derive(Clone)]
pub(crate) struct Tokens {
    source: Arc<dyn TokenSource>,
    shared: Shared,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    held: Option<Arc<Token>>,
    /// The request for a token that is under way.
    flight: Option<Flight>,
    /// Until when a token that still works is not renewed.
    renewal_after: Option<DateTime<Utc>>,
}

type Flight = SharedFuture<BoxFuture<'static, Result<Arc<Token>, Failure>>>;

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    pub(crate) fn new(source: Box<dyn TokenSource>, shared: Shared) -> Self {
        Self {
            source: Arc::from(source),
            shared,
            state: Arc::default(),
        }
    }

    /// A token that works as far as we know. Nobody waits for a renewal while the old one still works.
    pub(crate) async fn get(&self) -> Result<Arc<Token>, Failure> {
        let now = self.shared.clock.now();
        let flight = {
            let mut state = self.state();
            if let Some(held) = state.working(now) {
                if held.is_due(now) && state.renewal_after.is_none_or(|after| now >= after) {
                    drop(self.launch(&mut state));
                }
                return Ok(held);
            }
            self.launch(&mut state)
        };
        flight.await
    }

    /// Forgets a token that the carrier did not take, unless it was replaced meanwhile.
    pub(crate) fn forget(&self, token: &Arc<Token>) {
        let mut state = self.state();
        if state.held.as_ref().is_some_and(|held| Arc::ptr_eq(held, token)) {
            state.held = None;
        }
    }

    /// The request under way, begun if there is none. It runs on its own, so that whoever began it may give
    /// up; traces show it under them.
    fn launch(&self, state: &mut State) -> Flight {
        if let Some(flight) = &state.flight {
            return flight.clone();
        }
        let tokens = self.clone();
        let task = tokio::spawn(async move { tokens.fetch().await }.instrument(spans::current()));
        let flight = task
            .map(|end| {
                end.unwrap_or_else(|_| Err(Failure::Broken("the request for a token ended".to_owned())))
            })
            .boxed()
            .shared();
        state.flight = Some(flight.clone());
        flight
    }

    async fn fetch(&self) -> Result<Arc<Token>, Failure> {
        let fetched = tokio::time::timeout(self.shared.deadline, self.ask()).await;
        let fetched = fetched.unwrap_or(Err(Failure::Timeout)).map(Arc::new);
        let mut state = self.state();
        state.flight = None;
        match &fetched {
            Ok(token) => {
                state.held = Some(Arc::clone(token));
                state.renewal_after = None;
            }
            Err(_) => state.renewal_after = Some(self.shared.clock.now() + RENEWAL_PAUSE),
        }
        fetched
    }

    async fn ask(&self) -> Result<Token, Failure> {
        let clock = &*self.shared.clock;
        let answer = self.shared.http.exchange(self.source.request(), clock).await;
        let answer = answer.map_err(|failure| match failure {
            Failure::Unauthorized => Failure::Credentials,
            other => other,
        })?;
        if self.source.is_refusal(answer.status, &answer.body) {
            return Err(Failure::Credentials);
        }
        if !answer.status.is_success() {
            return Err(Failure::Status(answer.status.as_u16()));
        }
        self.source
            .read(&answer.body, clock.now())
            .ok_or(Failure::Unreadable("no token"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn working(&self, now: DateTime<Utc>) -> Option<Arc<Token>> {
        let held = self.held.as_ref()?;
        held.life
            .is_none_or(|life| now < life.ends_at)
            .then(|| Arc::clone(held))
    }
}

impl Token {
    fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.life.is_some_and(|life| now >= life.renew_at)
    }
}
