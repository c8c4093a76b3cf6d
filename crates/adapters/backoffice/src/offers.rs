//! Offers: put, read, moderate, price.

use kernel::{Money, OfferId, SellerId};
use offers::{AutomaticPriceRefusal, Decision, FeedEffect, IfMatch, Offer, OfferInput};
use serde::Serialize;
use usecases::change_offer::{OfferChangeRefusal, moderate_offer, price_offer};
use usecases::feed_offers::feed_offer;
use usecases::{LockSet, Transaction};
use uuid::Uuid;
use web::decode::{object, one_of};
use web::operation::{Call, Incoming, Read, Write};
use web::reply::Reply;
use web::resources::{OfferView, money, offer_input};
use web::view::View;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations, both, if_match, to_sentence};

use crate::sellers::existing;
use crate::{Access, BackOffice};

/// Creates or replaces one offer.
pub(crate) struct PutOffer {
    seller: SellerId,
    feed: OfferInput,
    if_match: Option<IfMatch>,
}

impl Write<BackOffice> for PutOffer {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let ids = incoming.id(0).zip(incoming.id(1));
        // The body is checked even if no offer can have the id.
        let id = ids.map_or(Uuid::nil().into(), |(_, offer)| offer);
        let feed = incoming.json(&offer_input(Some(id)));
        let (if_match, feed) = both(if_match(incoming.headers()), feed)?;
        Ok(ids.map(|(seller, _)| Self {
            seller,
            feed,
            if_match,
        }))
    }

    /// Accounts are never deleted, so the seller still exists in the transaction.
    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        call.deadline.run(existing(self.seller, call)).await??;
        Ok(())
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_offers([(self.seller, self.feed.id)])
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (feed, if_match) = (self.feed.clone(), self.if_match.as_ref());
        let replaced = feed_offer(tx, self.seller, feed, if_match, tx.now()).await?;
        let (effect, offer) = replaced.ok_or_else(|| Problem::from(Entry::other_state()))?;
        match effect {
            FeedEffect::Created => Reply::created(&PricedOfferView::from(&offer)),
            FeedEffect::Updated | FeedEffect::Unchanged => Reply::ok(&PricedOfferView::from(&offer)),
        }
    }
}

pub(crate) struct ReadOffer {
    seller: SellerId,
    offer: OfferId,
}

impl Read<BackOffice> for ReadOffer {
    const SCOPE: Access = Access::Read;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self { seller, offer }))
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let offer = call.state.offers.offer(self.seller.into(), self.offer).await?;
        let offer = offer.ok_or_else(Problem::not_found)?;
        Reply::ok(&PricedOfferView::from(&offer))
    }
}

/// Moves an offer through moderation.
pub(crate) struct ModerateOffer {
    seller: SellerId,
    offer: OfferId,
    decision: Decision,
}

impl Write<BackOffice> for ModerateOffer {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let body = object!(decision: required(one_of(&Decision::ALL, Decision::as_str)) => decision);
        let decision = incoming.json(&body)?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self {
            seller,
            offer,
            decision,
        }))
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_offers([(self.seller, self.offer)])
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let moderated = moderate_offer(tx, self.seller, self.offer, self.decision, tx.now()).await;
        Reply::ok(&PricedOfferView::from(&moderated.map_refusal(problem)?))
    }
}

/// Sets the price from the pricing engine, unless the seller has set one manually.
pub(crate) struct PriceOffer {
    seller: SellerId,
    offer: OfferId,
    price: Money,
}

impl Write<BackOffice> for PriceOffer {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let price = incoming.json(&object!(price: required(money()) => price))?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self { seller, offer, price }))
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_offers([(self.seller, self.offer)])
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let priced = price_offer(tx, self.seller, self.offer, self.price, tx.now()).await;
        Reply::ok(&PricedOfferView::from(&priced.map_refusal(problem)?))
    }
}

fn problem(refusal: OfferChangeRefusal<AutomaticPriceRefusal>) -> Problem {
    let OfferChangeRefusal::Rules(refused) = refusal else {
        return Problem::not_found();
    };
    let code = match refused {
        AutomaticPriceRefusal::NoPrice => Code::NoPriceRow,
        AutomaticPriceRefusal::Manual => Code::PriceIsManual,
    };
    Entry::new(code, to_sentence(&refused)).at("price").into()
}

/// An offer as in `/v1`, and the source of its price.
#[derive(Serialize)]
struct PricedOfferView<'a> {
    #[serde(flatten)]
    offer: OfferView<'a>,
    price_source: Option<&'static str>,
}

impl<'a> From<&'a Offer> for PricedOfferView<'a> {
    fn from(offer: &'a Offer) -> Self {
        Self {
            offer: OfferView::whole(offer),
            price_source: offer.price.map(|price| price.source.as_str()),
        }
    }
}
