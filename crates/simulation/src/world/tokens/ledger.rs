//! What those outside know of tokens: which were handed out, which were ended, and what the gate has said.

use std::sync::{Arc, Mutex, MutexGuard};

use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::{ClientId, FamilyId, Quota, TokenKey};

use crate::executor::lock;

/// An access token in a client's hands.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) key: TokenKey,
    pub(super) client_id: ClientId,
    pub(super) seller: SellerId,
    /// When its making began.
    pub(super) begun: DateTime<Utc>,
    /// When the client got it.
    pub(super) told: DateTime<Utc>,
}

/// Whose tokens end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Token(TokenKey),
    Family(FamilyId),
    /// Every family that there was.
    Families(ClientId),
    Connection(SellerId, ClientId),
    /// For as long as the application is suspended.
    Suspended(ClientId),
    Deleted(ClientId),
}

impl Ended {
    /// Whether the token hangs on it.
    pub(super) fn ends(self, held: &Held) -> bool {
        match self {
            Self::Token(key) => key == held.key,
            Self::Family(family) => family == held.key.family,
            Self::Connection(seller, client_id) => (seller, client_id) == (held.seller, held.client_id),
            Self::Families(client_id) | Self::Suspended(client_id) | Self::Deleted(client_id) => {
                client_id == held.client_id
            }
        }
    }
}

/// An end, as whoever asked for it knows of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) of: Ended,
    pub(super) begun: DateTime<Utc>,
    /// When it was said to be done.
    pub(super) told: Option<DateTime<Utc>>,
    /// When its undoing began.
    pub(super) undone: Option<DateTime<Utc>>,
}

/// What the gate has said.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said {
    /// Nothing: no answer came.
    Nothing,
    /// The token is dead.
    Dead,
    /// The token lives, and this is the request's place in the window.
    Lives(Quota),
}

/// A question to the gate.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) held: Held,
    pub(super) begun: DateTime<Utc>,
    pub(super) ended: DateTime<Utc>,
    pub(super) answer: Said,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) held: Vec<Held>,
    pub(super) ends: Vec<End>,
    pub(super) asked: Vec<Asked>,
    /// Families whose clients never present anything twice, and that nobody has stolen from.
    pub(super) careful: Vec<FamilyId>,
}

/// The ledger of a run. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Known>>);

impl Ledger {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.0)
    }

    /// An end is asked for; returns its place.
    pub(super) fn begin(&self, of: Ended, begun: DateTime<Utc>) -> usize {
        let mut known = self.known();
        known.ends.push(End {
            of,
            begun,
            told: None,
            undone: None,
        });
        known.ends.len() - 1
    }

    pub(super) fn change(&self, place: usize, change: impl FnOnce(&mut End)) {
        if let Some(end) = self.known().ends.get_mut(place) {
            change(end);
        }
    }
}
