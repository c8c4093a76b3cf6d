//! The event journal: a seller's events in one order, kept for a while, whether or not anybody has subscribed.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use kernel::{Reader, SellerId, StoreError};

use crate::{Event, EventId, WebhookEvent};

/// Default and largest number of events on a page.
pub const DEFAULT_EVENTS: u16 = 50;
pub const MAX_EVENTS: u16 = 200;
/// Maximum number of events examined for one page: those that its reader may not see are skipped.
pub const MAX_LOOKED_AT: u16 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournaledEvent {
    pub id: EventId,
    pub event: Event,
    pub occurred_at: DateTime<Utc>,
}

/// A place in a seller's journal: behind the event with this number, or before all events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalPlace {
    /// From 1, without gaps, in the order of the commits; 0 before all events.
    pub number: i64,
    /// The event with the number; None if it was not kept any more when the place was given out.
    pub event: Option<EventId>,
    /// When the place was given out.
    pub at: DateTime<Utc>,
}

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalStart {
    /// At the oldest event that is kept.
    Oldest,
    After(JournalPlace),
    /// At the first event that was recorded then or later.
    Since(DateTime<Utc>),
}

/// What a journal has, in one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalState {
    /// The number of the last event that was ever recorded; 0 if there was none.
    pub last: i64,
    /// The number of the oldest event that is kept, if any is.
    pub oldest: Option<i64>,
}

/// Why a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalRefusal {
    /// The database does not know the place: a restore or a failover has lost what was there.
    #[error(
        "this place is not in the journal of this database: read the resources, and start again with `since`"
    )]
    UnknownPlace,
    /// Events behind the place are no longer kept.
    #[error(
        "events after this place may no longer be kept: read the resources, and start again with `since`"
    )]
    NoLongerKept,
    /// Events are kept from this time on.
    #[error(
        "events recorded since {} are kept: read the resources, and start with a later time",
        .0.to_rfc3339_opts(SecondsFormat::Micros, true)
    )]
    TooOld(DateTime<Utc>),
}

impl JournalState {
    /// Whether all events behind a place are kept. `present` is the event with the place's number;
    /// `kept_since` the start of the journals or, if later, the time before which events are cleared.
    pub fn admits(
        self,
        place: JournalPlace,
        present: Option<EventId>,
        kept_since: DateTime<Utc>,
    ) -> Result<(), JournalRefusal> {
        let is_among_kept = self.oldest.is_some_and(|oldest| oldest <= place.number);
        let is_known = match present {
            Some(_) => present == place.event,
            None => place.number == 0 || !is_among_kept,
        };
        if !is_known || place.number > self.last {
            return Err(JournalRefusal::UnknownPlace);
        }
        // After so long, another event may have had the number, and be cleared too.
        if present.is_none() && place.number > 0 && place.at <= kept_since {
            return Err(JournalRefusal::NoLongerKept);
        }
        let has_gap = self
            .oldest
            .is_none_or(|oldest| oldest > place.number.saturating_add(1));
        if has_gap && place.number < self.last {
            return Err(JournalRefusal::NoLongerKept);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPage {
    pub events: Vec<JournaledEvent>,
    /// How far the journal was looked at: where the next page begins.
    pub place: JournalPlace,
    pub has_more: bool,
}

impl JournalPage {
    /// Whether its reader has seen everything so far.
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty() && !self.has_more
    }
}

/// Reads journals.
///
/// An adapter MUST return every event of these names exactly once, in the order of the commits, to a reader that
/// follows the places, and MUST never return another seller's. It looks at [`MAX_LOOKED_AT`] events at most.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait JournalReader: Send + Sync {
    /// Up to `limit` events of these names.
    async fn page(
        &self,
        reader: Reader,
        start: JournalStart,
        names: &[WebhookEvent],
        limit: u16,
    ) -> Result<Result<JournalPage, JournalRefusal>, StoreError>;

    /// The numbers of the last events of these sellers, of those that have any.
    async fn last_numbers(&self, sellers: &[SellerId]) -> Result<HashMap<SellerId, i64>, StoreError>;
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_place_is_admitted_where_nothing_behind_it_is_lost() {
        use JournalRefusal::{NoLongerKept, UnknownPlace};
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let kept_since = now - TimeDelta::days(30);
        let id = |n: u128| Some(EventId::from(Uuid::from_u128(n)));
        let (young, old) = (now - TimeDelta::days(1), now - TimeDelta::days(31));
        for (number, event, at, present, last, oldest, expected) in [
            // An empty journal, and its first events.
            (0, None, young, None, 0, None, Ok(())),
            (0, None, old, None, 2, Some(1), Ok(())),
            (0, None, young, None, 2, Some(2), Err(NoLongerKept)),
            (0, None, young, None, 2, None, Err(NoLongerKept)),
            // A kept event, and another one with its number.
            (3, id(3), young, id(3), 5, Some(1), Ok(())),
            (3, id(3), old, id(3), 5, Some(3), Ok(())),
            (3, id(3), young, id(9), 5, Some(1), Err(UnknownPlace)),
            (3, None, young, id(9), 5, Some(1), Err(UnknownPlace)),
            // The event was cleared: everything behind it is kept, or not.
            (3, id(3), young, None, 3, None, Ok(())),
            (3, None, young, None, 3, None, Ok(())),
            (3, id(3), young, None, 5, Some(4), Ok(())),
            (3, id(3), young, None, 5, Some(5), Err(NoLongerKept)),
            (3, id(3), young, None, 5, None, Err(NoLongerKept)),
            (3, id(3), old, None, 5, Some(4), Err(NoLongerKept)),
            // Lost.
            (3, id(3), young, None, 5, Some(2), Err(UnknownPlace)),
            (3, id(3), young, None, 2, Some(1), Err(UnknownPlace)),
            (3, id(3), old, None, 0, None, Err(UnknownPlace)),
        ] {
            let place = JournalPlace { number, event, at };
            let state = JournalState { last, oldest };
            let found = state.admits(place, present, kept_since);
            assert_eq!(found, expected, "{place:?} {present:?} {state:?}");
        }
    }
}
