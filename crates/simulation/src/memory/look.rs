//! What is looked at, past every port, when a run is over.

use std::collections::BTreeSet;

use ::orders::{SellerOrder, ShipmentMail};
use changes::ChangeItem;
use kernel::{OfferId, SellerId};
use oauth::{ClientId, FamilyId};
use webhooks::{DeliveryId, LaneKey};

use super::{Database, DeliveryRow, SubscriptionRow, tables::CredentialKey};

/// A family with what lies in it.
pub(crate) struct FamilyView {
    pub(crate) id: FamilyId,
    pub(crate) client_id: ClientId,
    pub(crate) revoked: bool,
    /// Whether each of its refresh tokens was used.
    pub(crate) refresh_tokens: Vec<bool>,
}

impl Database {
    /// The families of tokens.
    pub(crate) fn families(&self) -> Vec<FamilyView> {
        self.at_once(|stored| {
            let tokens = stored.tables.refresh_tokens.committed();
            let view = |(id, row): (&FamilyId, &super::tables::FamilyRow)| FamilyView {
                id: *id,
                client_id: row.client_id,
                revoked: row.revoked,
                refresh_tokens: tokens
                    .iter()
                    .filter(|(key, _)| key.0 == *id)
                    .map(|(_, token)| token.used_at.is_some())
                    .collect(),
            };
            stored.tables.families.committed().iter().map(view).collect()
        })
    }

    /// The access tokens that there are.
    pub(crate) fn access_tokens(&self) -> BTreeSet<CredentialKey> {
        self.at_once(|stored| stored.tables.access_tokens.committed().keys().copied().collect())
    }

    /// The parts of orders.
    pub(crate) fn parts(&self) -> Vec<SellerOrder> {
        self.at_once(|stored| stored.tables.parts.committed().values().cloned().collect())
    }

    /// The mails to buyers.
    pub(crate) fn mails(&self) -> Vec<ShipmentMail> {
        self.at_once(|stored| stored.tables.mails.committed().values().cloned().collect())
    }

    /// An offer's stock.
    pub(crate) fn stock(&self, seller: SellerId, offer: OfferId) -> Option<i32> {
        self.at_once(|stored| {
            Some(
                stored
                    .tables
                    .offers
                    .committed()
                    .get(&(seller, offer))?
                    .stock?
                    .get(),
            )
        })
    }

    /// The whole feed, in its order.
    pub(crate) fn feed(&self) -> Vec<ChangeItem> {
        self.at_once(|stored| stored.tables.feed.committed().values().copied().collect())
    }

    /// The subscriptions that there are.
    pub(crate) fn subscriptions(&self) -> Vec<(LaneKey, SubscriptionRow)> {
        self.at_once(|stored| {
            let rows = stored.tables.subscriptions.committed().iter();
            rows.map(|(key, row)| (*key, row.clone())).collect()
        })
    }

    /// The deliveries that there are.
    pub(crate) fn deliveries(&self) -> Vec<((LaneKey, DeliveryId), DeliveryRow)> {
        self.at_once(|stored| {
            let rows = stored.tables.deliveries.committed().iter();
            rows.map(|(key, row)| (*key, row.clone())).collect()
        })
    }

    /// Whether no transaction is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.at_once(|stored| stored.horizon() > stored.written)
    }

    /// When the next lane is due, if any ever is.
    pub(crate) fn next_lane_due(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        self.at_once(|stored| {
            let rows = stored.tables.subscriptions.committed().values();
            rows.filter_map(|row| row.wake_at).min()
        })
    }
}
