//! What was seen in a run, by those who cannot look into the database.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use changes::ChangeItem;
use chrono::{DateTime, Utc};
use webhooks::{Message, SubscriptionId};

use super::deed::Deed;
use crate::executor::lock;

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The request was refused.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self.status, 400..=499)
    }
}

/// What became of a request with a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    /// What was asked for.
    pub(crate) deed: Option<Deed>,
    /// Every answer that a process gave to it, whether or not it arrived.
    pub(crate) given: Vec<Reply>,
    /// The answer with which its client was content.
    pub(crate) told: Option<Reply>,
}

/// A message as a receiver saw it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) message: Message,
    pub(crate) at: DateTime<Utc>,
    /// When the attempt ended, if its sender saw that.
    pub(crate) ended_at: Option<DateTime<Utc>>,
    /// The status that the receiver answered with, if it did.
    pub(crate) answered: Option<u16>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By the request's name, which is its key too.
    pub(crate) stories: BTreeMap<String, Story>,
    pub(crate) received: Vec<Received>,
    /// Subscriptions whose end was told to their application, and when.
    pub(crate) unsubscribed: Vec<(SubscriptionId, DateTime<Utc>)>,
    /// The feed as somebody followed it.
    pub(crate) followed: Vec<ChangeItem>,
    /// What went against the rules while it was going on.
    pub(crate) wrongs: Vec<String>,
    /// What happened, line by line, where somebody wants to read it.
    pub(crate) trace: Option<Vec<String>>,
    /// Requests that have no key.
    pub(crate) requests: usize,
}

/// The history of a run. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(Arc<Mutex<Seen>>);

impl History {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.0)
    }

    /// Writes a line, where somebody reads.
    pub(crate) fn note(&self, at: DateTime<Utc>, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.seen().trace {
            trace.push(format!("{} {}", at.format("%H:%M:%S%.3f"), line()));
        }
    }

    pub(crate) fn wrong(&self, what: String) {
        self.seen().wrongs.push(what);
    }
}
