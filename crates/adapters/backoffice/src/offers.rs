//! Offers: put, read, moderate, price.

use actix_web::http::Method;
use kernel::{Money, OfferId, SellerId};
use offers::{AutomaticPriceRefusal, Decision, FeedEffect, Offer, OfferInput, OfferStatus, Stock};
use serde::Serialize;
use usecases::change_offer::{Refusal, moderate_offer, price_offer};
use usecases::feed_offers::feed_offer;
use usecases::{LockSet, Transaction};
use web::decode::{Field, FieldSet, Place, Shape, integer, nullable, object, one_of, required, text};
use web::json::Object;
use web::money::{MoneyView, money};
use web::operation::{Call, Incoming, Operation, Read, Write};
use web::reply::Reply;
use web::schema::Node;
use web::timestamps::Timestamp;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::sellers::existing;
use crate::validation::rule;
use crate::{Access, BackOffice};

/// Creates or replaces one offer.
pub(crate) struct PutOffer {
    seller: SellerId,
    feed: OfferInput,
}

impl Operation<BackOffice> for PutOffer {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/sellers/{seller}/offers/{offer}";
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let fields = incoming.json_alone(&body())?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self {
            seller,
            feed: feed(offer, fields),
        }))
    }
}

impl Write<BackOffice> for PutOffer {
    /// Accounts are never deleted, so the seller still exists in the transaction.
    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        existing(self.seller, call).await.map(drop)
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_offers([(self.seller, self.feed.id)])
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (effect, offer) = feed_offer(tx, self.seller, self.feed.clone(), tx.now()).await?;
        match effect {
            FeedEffect::Created => Reply::created(&OfferView::from(&offer)),
            FeedEffect::Updated | FeedEffect::Unchanged => Reply::ok(&OfferView::from(&offer)),
        }
    }
}

/// Reads one offer.
pub(crate) struct ReadOffer {
    seller: SellerId,
    offer: OfferId,
}

impl Operation<BackOffice> for ReadOffer {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/sellers/{seller}/offers/{offer}";
    const SCOPE: Access = Access::Read;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_query()?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self { seller, offer }))
    }
}

impl Read<BackOffice> for ReadOffer {
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let offer = call.state.offers.offer(self.seller, self.offer).await?;
        let offer = offer.ok_or_else(Problem::not_found)?;
        Reply::ok(&OfferView::from(&offer))
    }
}

/// Moves an offer through moderation.
pub(crate) struct ModerateOffer {
    seller: SellerId,
    offer: OfferId,
    decision: Decision,
}

impl Operation<BackOffice> for ModerateOffer {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/sellers/{seller}/offers/{offer}/moderation";
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let body = object((required("decision", one_of(&Decision::ALL, Decision::as_str)),));
        let (decision,) = incoming.json_alone(&body)?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self {
            seller,
            offer,
            decision,
        }))
    }
}

impl Write<BackOffice> for ModerateOffer {
    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_offers([(self.seller, self.offer)])
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let moderated = moderate_offer(tx, self.seller, self.offer, self.decision, tx.now()).await;
        Reply::ok(&OfferView::from(&moderated.map_refusal(problem)?))
    }
}

/// Sets the price from the pricing engine, unless the seller has set one manually.
pub(crate) struct PriceOffer {
    seller: SellerId,
    offer: OfferId,
    price: Money,
}

impl Operation<BackOffice> for PriceOffer {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/sellers/{seller}/offers/{offer}/automatic-price";
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let (price,) = incoming.json_alone(&object((required("price", money()),)))?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, offer)| Self { seller, offer, price }))
    }
}

impl Write<BackOffice> for PriceOffer {
    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_offers([(self.seller, self.offer)])
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let priced = price_offer(tx, self.seller, self.offer, self.price, tx.now()).await;
        Reply::ok(&OfferView::from(&priced.map_refusal(problem)?))
    }
}

fn problem(refusal: Refusal<AutomaticPriceRefusal>) -> Problem {
    let Refusal::Rules(refused) = refusal else {
        return Problem::not_found();
    };
    let code = match refused {
        AutomaticPriceRefusal::NoPrice => Code::NoPriceRow,
        AutomaticPriceRefusal::Manual => Code::PriceIsManual,
    };
    Entry::new(code, to_sentence(&refused)).at("price").into()
}

/// An offer as in `/v1` (contract: Offer), and the source of its price.
#[derive(Serialize)]
struct OfferView<'a> {
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
    created_at: Timestamp,
    updated_at: Timestamp,
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
            created_at: Timestamp::new(offer.created_at),
            updated_at: Timestamp::new(offer.updated_at),
            price_source: offer.price.map(|price| price.source.as_str()),
        }
    }
}

/// The fields of an offer in the contract's order, from `title` to `url`.
type Fields = (
    String,
    String,
    OfferStatus,
    Option<Money>,
    Option<Stock>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
);

/// The body of a PUT: a nullable field may be absent, which means null (D99).
fn body() -> impl Shape<Value = Fields> {
    object(fields())
}

/// A line of an import: `id` and the fields of a PUT (D100).
pub(crate) fn import_line() -> impl Shape<Value = OfferInput> {
    object(WithId(fields())).map(|(id, fields)| feed(id, fields))
}

/// The offer with this id and these fields.
fn feed(id: OfferId, fields: Fields) -> OfferInput {
    let (title, handle, status, price, stock, ean, brand, signature, thumbnail, url) = fields;
    OfferInput {
        id,
        title,
        handle,
        status,
        price,
        stock,
        ean,
        brand,
        signature,
        thumbnail,
        url,
    }
}

fn fields() -> impl FieldSet<Values = Fields> {
    (
        required("title", text().checked(rule(offers::title))),
        required("handle", text().checked(rule(offers::handle))),
        required("status", one_of(&OfferStatus::ALL, OfferStatus::as_str)),
        nullable("price", money()),
        nullable(
            "stock",
            integer(0..=i64::from(i32::MAX)).checked(rule(Stock::new)),
        ),
        nullable("ean", text().checked(rule(offers::short_text))),
        nullable("brand", text().checked(rule(offers::short_text))),
        nullable("signature", text().checked(rule(offers::short_text))),
        nullable("thumbnail", text().checked(rule(offers::web_address))),
        required("url", text().checked(rule(offers::web_address))),
    )
}

/// A table of fields with `id` in front of the others.
struct WithId<F>(F);

impl<F: FieldSet> FieldSet for WithId<F> {
    type Values = (OfferId, F::Values);

    fn names(&self) -> Vec<&'static str> {
        let mut names = vec![id().name()];
        names.extend(self.0.names());
        names
    }

    fn members(&self) -> Vec<(&'static str, bool, Node)> {
        let mut members = vec![(id().name(), id().is_required(), id().schema())];
        members.extend(self.0.members());
        members
    }

    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<Self::Values> {
        let id = id().read(object, place);
        let others = self.0.read(object, place);
        id.zip(others)
    }
}

fn id() -> impl Field<Value = OfferId> {
    required("id", text().checked(rule(|id: String| id.parse())))
}
