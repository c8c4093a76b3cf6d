//! What clients ask for, and the use cases that do it.

use async_trait::async_trait;
use kernel::{KeySpace, OfferId, Remembered, SellerId};
use oauth::ClientId;
use offers::OfferPatch;
use orders::{OrderId, OrderRef, SellerOrder, Sighting};
use usecases::{
    Answer, Failure, Transaction, Work, create_subscription, delete_subscription, patch_offer, place_order,
    settle_order, ship_order,
};
use webhooks::SubscriptionId;

use super::history::Reply;
use crate::Chance;

/// Something that is to be done once.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    Patch(SellerId, OfferId, OfferPatch),
    Place(place_order::Request),
    Settle(OrderId, settle_order::Settlement),
    Ship(SellerId, ship_order::Report),
    Subscribe(SellerId, ClientId, create_subscription::Wanted),
    Unsubscribe(SellerId, ClientId, SubscriptionId),
}

impl Deed {
    /// Whose key it is done under.
    pub(crate) const fn space(&self) -> KeySpace {
        match self {
            Self::Patch(seller, ..)
            | Self::Ship(seller, _)
            | Self::Subscribe(seller, ..)
            | Self::Unsubscribe(seller, ..) => KeySpace::Seller(*seller),
            Self::Place(_) | Self::Settle(..) => KeySpace::Operator,
        }
    }
}

/// A refusal as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

pub(crate) type Failed = Failure<Refused>;

pub(crate) fn failed<R: std::fmt::Display>(failure: Failure<R>) -> Failed {
    match failure {
        Failure::Refused(refusal) => Failure::Refused(Refused(refusal.to_string())),
        Failure::Store(error) => Failure::Store(error),
    }
}

impl Answer for Reply {
    fn remembered(&self) -> Remembered {
        Remembered {
            status: self.status,
            body: self.body.clone().into_bytes(),
        }
    }
}

/// A deed that is ready for its transaction.
pub(crate) struct Prepared {
    pub(crate) deed: Deed,
    pub(crate) sighting: Option<Sighting>,
    pub(crate) chance: Chance,
}

fn done(status: u16, body: String) -> Reply {
    Reply { status, body }
}

fn state_of(parts: &[SellerOrder]) -> String {
    let states = parts.iter().map(|part| format!("{:?}", part.state));
    states.collect::<Vec<_>>().join("; ")
}

#[async_trait]
impl Work for Prepared {
    type Done = Reply;
    type Error = Failed;

    async fn run(&self, tx: &dyn Transaction) -> Result<Reply, Failed> {
        let (now, chance) = (tx.now(), &self.chance);
        match &self.deed {
            Deed::Patch(seller, offer, patch) => {
                let offer = patch_offer::patch_offer(tx, *seller, *offer, *patch, now).await;
                let offer = offer.map_err(failed)?;
                Ok(done(200, format!("{:?} {}", offer.stock, offer.updated_at)))
            }
            Deed::Place(request) => {
                let placed = place_order::place_order(tx, tx, chance, request, now)
                    .await
                    .map_err(failed)?;
                Ok(done(201, placed.id.to_string()))
            }
            Deed::Settle(order, step) => {
                let parts = settle_order::settle_order(tx, tx, &OrderRef::Id(*order), *step, now).await;
                Ok(done(200, state_of(&parts.map_err(failed)?)))
            }
            Deed::Ship(seller, report) => {
                let sighting = self.sighting.clone();
                let part = ship_order::record_report(tx, tx, chance, *seller, report, sighting, now).await;
                Ok(done(201, state_of(&[part.map_err(failed)?])))
            }
            Deed::Subscribe(seller, client_id, wanted) => {
                let pair = (*seller, *client_id);
                let made = create_subscription::create_subscription(tx, chance, pair, wanted, now).await;
                Ok(done(201, made.map_err(failed)?.id.to_string()))
            }
            Deed::Unsubscribe(seller, client_id, id) => {
                let ended = delete_subscription::delete_subscription(tx, *seller, *client_id, *id).await;
                ended.map_err(failed)?;
                Ok(done(204, String::new()))
            }
        }
    }
}
