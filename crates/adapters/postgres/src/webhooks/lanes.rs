//! The port of lanes: each call is a statement or a transaction of its own over the pool.

use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use uuid::Uuid;
use webhooks::{
    Claimed, Conclusion, Due, Hold, Lane, LaneKey, Lanes, Release, Room, SubscriptionId, TopUp, ToppedUp,
};

use super::{
    aside::{SetAside, WakeForgotten},
    claim::{Claim, ClaimRow},
    due::DueRow,
    settle::Settlement,
    subscription_row,
    top_up::{Prolong, ProlongedRow},
    unreadable::Unreadable,
};
use crate::{reads::Reads, sealing::Sealing};

/// Lanes of deliveries.
pub(crate) struct StoredLanes {
    pub(crate) reads: Reads,
    sealing: Sealing,
    unreadable: Unreadable,
}

#[async_trait]
impl Lanes for StoredLanes {
    async fn claim(&self, fence: Uuid, room: Room) -> Result<Claimed, StoreError> {
        let claim = Claim::new(fence, &room);
        let rows: Vec<ClaimRow> = self
            .reads
            .ask(|lent| async move { claim.get_results::<ClaimRow>(&mut lent.connection()).await })
            .await?;
        let more = rows.iter().any(|row| row.more);
        let (live, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(ClaimRow::is_live);
        let set_aside = if others.is_empty() {
            0
        } else {
            self.set_aside(&others).await
        };
        Ok(Claimed {
            lanes: self.lanes(fence, live),
            set_aside,
            more,
        })
    }

    async fn top_up(&self, held: &[TopUp]) -> Result<Vec<ToppedUp>, StoreError> {
        let prolong = Prolong::new(held);
        let rows = self
            .reads
            .ask(|lent| async move { prolong.get_results::<ProlongedRow>(&mut lent.connection()).await })
            .await?;
        Ok(topped_up(rows))
    }

    async fn settle(&self, conclusions: &[Conclusion], released: &[Release]) -> Result<(), StoreError> {
        if conclusions.is_empty() && released.is_empty() {
            return Ok(());
        }
        let settlement = Settlement::new(conclusions, released)?;
        self.reads
            .ask(|lent| async move { Box::pin(settlement.send(lent.connection())).await })
            .await
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        self.reads
            .ask(|lent| async move { WakeForgotten.execute(&mut lent.connection()).await })
            .await
    }
}

impl StoredLanes {
    pub(crate) fn new(reads: Reads, sealing: Sealing) -> Self {
        Self {
            reads,
            sealing,
            unreadable: Unreadable::default(),
        }
    }

    /// How many of them were. What fails here is tried again with the next claim, for the lanes are still due.
    async fn set_aside(&self, rows: &[ClaimRow]) -> usize {
        let aside = SetAside {
            sellers: rows.iter().map(|row| row.seller_id).collect(),
            lanes: rows.iter().map(|row| row.id).collect(),
        };
        let set = self
            .reads
            .ask(|lent| async move { aside.get_results::<(Uuid, Uuid)>(&mut lent.connection()).await })
            .await;
        match set {
            Ok(lanes) => lanes.len(),
            Err(error) => {
                tracing::warn!(error = %error, "lanes that may not be worked on could not be set aside");
                0
            }
        }
    }

    /// Rows of one lane stand together. One whose address or secret cannot be read is told and left to its lease.
    pub(super) fn lanes(&self, fence: Uuid, rows: Vec<ClaimRow>) -> Vec<Lane> {
        let mut lanes = Vec::<Lane>::new();
        let mut unreadable = None;
        for row in rows {
            let hold = hold(row.seller_id, row.id, fence);
            if unreadable == Some(hold) {
                continue;
            }
            if lanes.last().is_none_or(|lane| lane.hold != hold) {
                match self.lane(hold, &row) {
                    Ok(lane) => lanes.push(lane),
                    Err(error) => {
                        self.unreadable.note(&error);
                        unreadable = Some(hold);
                        continue;
                    }
                }
            }
            if let Some(lane) = lanes.last_mut() {
                lane.deliveries.extend(row.due.and_then(sound));
            }
        }
        lanes
    }

    fn lane(&self, hold: Hold, row: &ClaimRow) -> Result<Lane, StoreError> {
        let LaneKey { seller, subscription } = hold.lane;
        Ok(Lane {
            hold,
            client_id: row.client_id.into(),
            url: subscription_row::url(subscription, &row.url)?,
            secret: subscription_row::open(&self.sealing, seller, subscription, &row.secret)?,
            failing: row.failing,
            deliveries: Vec::new(),
        })
    }
}

/// Rows of one lane stand together.
pub(super) fn topped_up(rows: impl IntoIterator<Item = ProlongedRow>) -> Vec<ToppedUp> {
    let mut lanes = Vec::<ToppedUp>::new();
    for row in rows {
        let claim = hold(row.seller_id, row.id, row.fence);
        if lanes.last().is_none_or(|lane| lane.hold != claim) {
            lanes.push(ToppedUp {
                hold: claim,
                deliveries: Vec::new(),
            });
        }
        if let Some(lane) = lanes.last_mut() {
            lane.deliveries.extend(row.due.and_then(sound));
        }
    }
    lanes
}

fn hold(seller: Uuid, subscription: Uuid, fence: Uuid) -> Hold {
    Hold {
        lane: LaneKey {
            seller: SellerId::from(seller),
            subscription: SubscriptionId::from(subscription),
        },
        fence,
    }
}

/// A row that cannot be read is told and left out: passed on as a failure, it would hold up all that came with it.
fn sound(row: DueRow) -> Option<Due> {
    let tell = |error: &StoreError| tracing::error!(error = %error, "a delivery is left out");
    Due::try_from(row).inspect_err(tell).ok()
}
