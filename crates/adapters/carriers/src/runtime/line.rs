//! One carrier, asked within a deadline, and only as often as is good for it and for us.

use std::{fmt, sync::Arc, time::Duration};

use kernel::Clock;
use orders::{Carrier, Lookup, Sighting, TrackingNumber, TrackingStatus};
use reqwest::StatusCode;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tracing::Instrument;

use super::{
    Failure, Http, TokenSource,
    breaker::{Breaker, Outcome, Ticket},
    spans,
    tokens::Tokens,
};
use crate::api::{Answer, Api, Reading};

/// How many look-ups are with one carrier at a time.
const IN_FLIGHT: usize = 4;

/// What must be left of the deadline for a second try.
const WORTH_A_RETRY: Duration = Duration::from_secs(1);

/// The longest code that is kept, in characters. Carriers' codes are far shorter.
const LONGEST_CODE: usize = 64;

/// What all carriers have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) http: Http,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) deadline: Duration,
}

/// The way to one carrier.
pub(crate) struct Line {
    carrier: Carrier,
    api: Box<dyn Api>,
    tokens: Option<Tokens>,
    breaker: Breaker,
    in_flight: Semaphore,
    shared: Shared,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("carrier", &self.carrier)
            .finish_non_exhaustive()
    }
}

impl Line {
    pub(crate) fn new(
        carrier: Carrier,
        api: Box<dyn Api>,
        tokens: Option<Box<dyn TokenSource>>,
        shared: Shared,
    ) -> Self {
        Self {
            carrier,
            api,
            tokens: tokens.map(|source| Tokens::new(source, shared.clone())),
            breaker: Breaker::new(carrier, Arc::clone(&shared.clock)),
            in_flight: Semaphore::new(IN_FLIGHT),
            shared,
        }
    }

    /// Asks the carrier, unless it is in trouble or busy with us already.
    pub(crate) async fn look_up(&self, number: &TrackingNumber) -> Lookup {
        let span = spans::look_up(self.carrier);
        let lookup = self.looked_up(number).instrument(span.clone()).await;
        spans::looked_up(&span, &lookup);
        lookup
    }

    async fn looked_up(&self, number: &TrackingNumber) -> Lookup {
        let began = Instant::now();
        let deadline = began + self.shared.deadline;
        if let Some(why) = self.breaker.refusal() {
            return Lookup::Unavailable(why.to_owned());
        }
        // Waiting for others says nothing of the carrier: who is asked has half of the deadline at least.
        let Ok(_place) = timeout_at(began + self.shared.deadline / 2, self.in_flight.acquire()).await else {
            return Lookup::Unavailable("not asked: too many look-ups are under way".to_owned());
        };
        let ticket = match self.breaker.admit() {
            Ok(ticket) => ticket,
            Err(why) => return Lookup::Unavailable(why.to_owned()),
        };
        let asked = timeout_at(deadline, self.ask(number, deadline)).await;
        let asked = asked.unwrap_or(Err(Failure::Timeout));
        self.settle(ticket, &asked);
        self.told(asked)
    }

    /// What an answer of the carrier says, without asking.
    pub(crate) fn understand(&self, number: &TrackingNumber, status: StatusCode, body: &[u8]) -> Lookup {
        self.told(self.api.read(number, status, body))
    }

    fn told(&self, asked: Result<Answer, Failure>) -> Lookup {
        match asked {
            Ok(Answer::Found(reading)) => Lookup::Found(self.sighting(&reading)),
            Ok(Answer::NotFound) => Lookup::NotFound,
            Err(failure) => Lookup::Unavailable(failure.to_string()),
        }
    }

    /// Asks, with at most one fresh token and one second try.
    async fn ask(&self, number: &TrackingNumber, deadline: Instant) -> Result<Answer, Failure> {
        let (mut renewed, mut retried) = (false, false);
        loop {
            match self.attempt(number).await {
                Err(Failure::Unauthorized) if self.tokens.is_some() && !renewed => renewed = true,
                // A token that was just made does not help either, or there is none to renew.
                Err(Failure::Unauthorized) => return Err(Failure::Credentials),
                Err(failure) if failure.is_passing() && !retried => {
                    if deadline.saturating_duration_since(Instant::now()) < WORTH_A_RETRY {
                        return Err(failure);
                    }
                    retried = true;
                }
                end => return end,
            }
        }
    }

    async fn attempt(&self, number: &TrackingNumber) -> Result<Answer, Failure> {
        let token = match &self.tokens {
            Some(tokens) => Some((tokens, tokens.get().await?)),
            None => None,
        };
        let request = self
            .api
            .request(number, token.as_ref().map(|(_, token)| &**token));
        let answer = self.shared.http.exchange(request, &*self.shared.clock).await;
        if let (Err(Failure::Unauthorized), Some((tokens, token))) = (&answer, &token) {
            tokens.forget(token);
        }
        let answer = answer?;
        self.api.read(number, answer.status, &answer.body)
    }

    fn settle(&self, ticket: Ticket<'_>, asked: &Result<Answer, Failure>) {
        let outcome = match asked {
            Ok(_) | Err(Failure::Refused(_)) => Outcome::Success,
            Err(Failure::Timeout | Failure::ConnectTimeout) => Outcome::Timeout,
            Err(Failure::Credentials | Failure::Unauthorized) => Outcome::Refused,
            Err(Failure::Throttled(pause)) => Outcome::Throttled(pause.unwrap_or_else(|| {
                self.api
                    .pause(ticket.is_after_throttling(), self.shared.clock.now())
            })),
            Err(_) => Outcome::Failure,
        };
        ticket.settle(outcome);
    }

    fn sighting(&self, reading: &Reading) -> Sighting {
        let raw_code: String = reading.code.chars().take(LONGEST_CODE).collect();
        let status = reading.status.unwrap_or_else(|| {
            tracing::warn!(carrier = self.carrier.as_str(), code = ?raw_code, "the carrier's code is not in its table");
            TrackingStatus::Unknown
        });
        Sighting {
            status,
            at: reading.at,
            raw_code,
        }
    }
}
