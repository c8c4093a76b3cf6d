//! What families, subscriptions and tokens hang on: applications, accounts and connections as they are now.

use kernel::SellerId;
use oauth::{ApplicationStatus, ClientId, Generation, ScopeSet};

use super::{Stored, SubscriptionRow, TxId};

/// What may be done with a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneState {
    /// Work.
    Live,
    /// Nothing while its application is suspended.
    Held,
    /// Nothing ever again.
    Gone,
}

/// The application as a transaction sees it, where it was not deleted.
pub(super) fn application(
    stored: &Stored,
    tx: TxId,
    client_id: ClientId,
) -> Option<(SellerId, ApplicationStatus, ScopeSet)> {
    let row = stored.tables.applications.get(tx, &client_id)?;
    let found = &row.application;
    (!row.deleted).then_some((found.owner, found.status, found.scopes))
}

pub(super) fn is_open(stored: &Stored, tx: TxId, seller: SellerId) -> bool {
    let account = stored.tables.sellers.get(tx, &seller);
    account.is_some_and(|account| account.closed_at.is_none())
}

/// Whether what was made under a connection still stands; what was made under none does.
pub(super) fn is_connected(
    stored: &Stored,
    tx: TxId,
    (seller, client_id): (SellerId, ClientId),
    generation: Option<Generation>,
) -> bool {
    let present = stored.tables.connections.get(tx, &(seller, client_id));
    generation.is_none_or(|made| present.is_some_and(|present| present.generation == made))
}

pub(super) fn lane_state(stored: &Stored, tx: TxId, row: &SubscriptionRow) -> LaneState {
    let (seller, client_id) = (row.new.seller, row.new.client_id);
    let Some((owner, status, _)) = application(stored, tx, client_id) else {
        return LaneState::Gone;
    };
    let stands = row.active
        && is_open(stored, tx, owner)
        && is_open(stored, tx, seller)
        && is_connected(stored, tx, (seller, client_id), row.generation);
    match (stands, status) {
        (false, _) => LaneState::Gone,
        (true, ApplicationStatus::Suspended) => LaneState::Held,
        (true, _) => LaneState::Live,
    }
}
