//! The way between a process and the database: statements take their time, and whatever can go wrong with one does.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use chrono::TimeDelta;
use kernel::StoreError;

use super::Database;
use crate::{
    Met,
    executor::{Place, Simulator},
};

/// How long a statement, or its answer, is on its way, in milliseconds.
const TRIP: (i64, i64) = (0, 4);
/// How long one is on its way that goes slowly, in milliseconds.
const SLOW_TRIP: (i64, i64) = (10, 2_500);
/// How late a statement may be carried out of which nobody heard again, in milliseconds.
const LATE: (i64, i64) = (0, 9_000);
/// How long silence is listened to, in milliseconds.
const SILENCE: (i64, i64) = (0, 5_500);

/// How much goes wrong at present, for all links. Clones are the same weather.
#[derive(Debug, Clone, Default)]
pub struct Weather(Arc<AtomicU32>);

impl Weather {
    /// So many of a thousand calls go wrong from now on.
    pub fn set(&self, per_mille: u32) {
        self.0.store(per_mille, Ordering::Relaxed);
    }

    /// How many do.
    pub fn per_mille(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is answered.
    Answered,
    /// It is answered, after a while.
    Slow,
    /// It surely does nothing, and the caller is told so.
    Refused,
    /// It never arrives, and the caller hears nothing.
    RequestLost,
    /// It is carried out, sooner or later, and the caller hears nothing.
    AnswerLost,
}

/// Why a call has failed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Trouble {
    #[error("the database cannot be reached")]
    Refused,
    #[error("the database gave no answer")]
    Silence,
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable(trouble.into())
    }
}

/// The way to the database.
#[derive(Debug, Clone)]
pub struct Link {
    pub(super) database: Database,
    weather: Weather,
    trip: (i64, i64),
}

impl Link {
    /// A way on which it is as good or bad as the weather.
    pub fn new(database: &Database, weather: &Weather) -> Self {
        Self {
            database: database.clone(),
            weather: weather.clone(),
            trip: TRIP,
        }
    }

    /// The same way without any length: nothing on it takes time.
    #[must_use]
    pub fn at_hand(self) -> Self {
        Self { trip: (0, 0), ..self }
    }

    pub(super) const fn simulator(&self) -> &Simulator {
        self.database.simulator()
    }

    pub(super) fn goes_wrong(&self) -> bool {
        self.simulator().happens(self.weather.per_mille())
    }

    pub(super) fn fate(&self) -> Fate {
        if !self.goes_wrong() {
            return Fate::Answered;
        }
        match self.simulator().draw(|chance| chance.u8(..8)) {
            0 => Fate::Refused,
            1 => Fate::RequestLost,
            2 => Fate::AnswerLost,
            _ => Fate::Slow,
        }
    }

    /// Has the server carry a statement out, and waits for its answer. The server goes on though nobody waits.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        statement: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let fate = self.fate();
        self.ask_with(fate, statement).await
    }

    pub(super) async fn ask_with<T: Send + 'static>(
        &self,
        fate: Fate,
        statement: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let simulator = self.simulator();
        match fate {
            Fate::Answered => {}
            Fate::Slow => simulator.count(Met::CallSlow),
            Fate::Refused => simulator.count(Met::CallRefused),
            Fate::RequestLost => simulator.count(Met::CallLost),
            Fate::AnswerLost => simulator.count(Met::CallUnheard),
        }
        match fate {
            Fate::Answered | Fate::Slow => {
                let trip = if fate == Fate::Slow { SLOW_TRIP } else { self.trip };
                simulator.pause(trip.0, trip.1).await;
                let answer = simulator.spawn(Place::Server, statement).ended().await;
                simulator.pause(trip.0, trip.1).await;
                answer.unwrap_or_else(|| Err(Trouble::Silence.into()))
            }
            Fate::Refused => {
                simulator.pause(self.trip.0, self.trip.1).await;
                Err(Trouble::Refused.into())
            }
            Fate::RequestLost => {
                simulator.pause(SILENCE.0, SILENCE.1).await;
                Err(Trouble::Silence.into())
            }
            Fate::AnswerLost => {
                let later = simulator.clone();
                let carried_out = async move {
                    later.pause(LATE.0, LATE.1).await;
                    statement.await
                };
                drop(simulator.spawn(Place::Server, carried_out));
                simulator.pause(SILENCE.0, SILENCE.1).await;
                Err(Trouble::Silence.into())
            }
        }
    }

    /// Has the server do something at which nobody waits, after at most so long.
    pub(super) fn leave(&self, within: TimeDelta, work: impl Future<Output = ()> + Send + 'static) {
        let simulator = self.simulator().clone();
        let later = async move {
            simulator.pause(0, within.num_milliseconds()).await;
            work.await;
        };
        drop(self.simulator().spawn(Place::Server, later));
    }

    /// How long the server may take to notice that a connection has gone.
    pub(super) fn notices_within(&self) -> TimeDelta {
        if self.weather.per_mille() > 0 {
            TimeDelta::seconds(3)
        } else {
            TimeDelta::zero()
        }
    }
}
