//! One offer: put and read.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{OfferId, SellerId};
use offers::{Offer, OfferFeed, PriceSource};
use serde::Serialize;
use usecases::feed_offer::{Outcome, feed_offer};
use usecases::{Transaction, UnitOfWorkError, Work};
use web::{Problem, timestamps};

use super::sellers::existing;
use crate::feed;
use crate::money::MoneyView;
use crate::operation::{Context, Operation};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;

/// An offer as `/v1` shows it (contract: Offer), and who set its price.
#[derive(Serialize)]
pub(crate) struct OfferView<'a> {
    id: String,
    title: &'a str,
    handle: &'a str,
    status: &'static str,
    price: Option<MoneyView>,
    stock: Option<i32>,
    ean: Option<&'a str>,
    brand: Option<&'a str>,
    signature: Option<&'a str>,
    thumbnail: Option<&'a str>,
    url: &'a str,
    #[serde(serialize_with = "timestamps::serialize")]
    created_at: DateTime<Utc>,
    #[serde(serialize_with = "timestamps::serialize")]
    updated_at: DateTime<Utc>,
    price_source: Option<&'static str>,
}

impl<'a> From<&'a Offer> for OfferView<'a> {
    fn from(offer: &'a Offer) -> Self {
        Self {
            id: offer.id.to_string(),
            title: &offer.title,
            handle: &offer.handle,
            status: offer.status.as_str(),
            price: offer.price.map(|price| price.money.into()),
            stock: offer.stock.map(offers::Stock::get),
            ean: offer.ean.as_deref(),
            brand: offer.brand.as_deref(),
            signature: offer.signature.as_deref(),
            thumbnail: offer.thumbnail.as_deref(),
            url: &offer.url,
            created_at: offer.created_at,
            updated_at: offer.updated_at,
            price_source: offer.price.map(|price| source(price.source)),
        }
    }
}

const fn source(source: PriceSource) -> &'static str {
    match source {
        PriceSource::Manual => "manual",
        PriceSource::Automatic => "automatic",
    }
}

/// `PUT /sellers/{seller}/offers/{offer}`
pub(crate) struct PutOffer;

impl Operation for PutOffer {
    type Input = Feed;

    fn decode(parts: &Parts<'_>) -> Result<Feed, Refusal> {
        let fields = parts.json(&feed::body())?;
        Ok(Feed {
            seller: parts.id(0)?,
            feed: feed::feed(parts.id(1)?, fields),
        })
    }

    async fn execute(input: Feed, context: Context) -> Result<Reply, Refusal> {
        // No account ever goes away, so what is seen here holds in the transaction too.
        existing(input.seller, &context).await?;
        let answer = |outcome| match outcome {
            Outcome::Created(offer) => Reply::created(&OfferView::from(&offer)),
            Outcome::Kept(offer) => Reply::ok(&OfferView::from(&offer)),
        };
        context.write(input, answer).await
    }
}

/// The offer to be fed.
pub(crate) struct Feed {
    seller: SellerId,
    feed: OfferFeed,
}

#[async_trait]
impl Work for Feed {
    type Done = Outcome;
    type Error = UnitOfWorkError;

    async fn run(&self, tx: &dyn Transaction) -> Result<Outcome, UnitOfWorkError> {
        Ok(feed_offer(tx, self.seller, self.feed.clone(), tx.now()).await?)
    }
}

/// `GET /sellers/{seller}/offers/{offer}`
pub(crate) struct ReadOffer;

impl Operation for ReadOffer {
    type Input = (SellerId, OfferId);

    fn decode(parts: &Parts<'_>) -> Result<(SellerId, OfferId), Refusal> {
        parts.no_query()?;
        Ok((parts.id(0)?, parts.id(1)?))
    }

    async fn execute((seller, id): (SellerId, OfferId), context: Context) -> Result<Reply, Refusal> {
        let offer = context.office.offers.offer(seller, id).await?;
        let offer = offer.ok_or_else(Problem::not_found)?;
        Ok(Reply::ok(&OfferView::from(&offer))?)
    }
}
