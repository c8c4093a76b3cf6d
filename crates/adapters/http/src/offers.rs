//! Operations on offers: read, list, change.

mod batch;

use std::{pin::pin, time::Duration};

use kernel::{Claim, Claimed, OfferId, Page};
use oauth::Scope;
use offers::{
    ExternalIdChange, MAX_EXTERNAL_ID, Offer, OfferCode, OfferFilter, OfferPatch, OfferStatus, PatchRefusal,
    SellerStatus, Stock, StockChange,
};
use tokio::time::timeout;
use usecases::change_offer::{OfferChangeRefusal, decide_patch, patch_offer};
use usecases::{LockSet, Row, Transaction};
use web::decode::{Fields, ObjectShape, Shape, object, one_of, text_of};
use web::openapi::{Docs, JsonBody, Parameter};
use web::operation::{Call, Incoming, Read, Unclaimed, Write};
use web::query::{self, Selection};
use web::reply::Reply;
use web::resources::{OfferView, money, offer_status, stock, stock_adjustment};
use web::schema::{Node, date_time};
use web::view::View;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations, both, if_match};

use crate::Public;
use crate::documents::{docs, example};
use crate::page::{self, List, PageRequest};

pub(crate) use batch::PatchOffers;

/// Reads one of the seller's offers.
pub(crate) struct ReadOffer(OfferId);

impl Read<Public> for ReadOffer {
    const SCOPE: &'static [Scope] = &[Scope::OffersRead];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(OfferView::schema, example!("offer"))),
        is_tagged: true,
        ..docs!("getOffer", "Offers")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let offer = call.state.offers.offer(call.caller.reader(), self.0).await?;
        let offer = offer.ok_or_else(Problem::not_found)?;
        reply(&offer, call.fields)
    }
}

fn reply(offer: &Offer, fields: Selection) -> Result<Reply, Error> {
    Ok(Reply::ok(&OfferView::new(offer, fields))?.tagged(offer.etag()))
}

/// Lists a page of the seller's offers, or those with some ids, newest first.
pub(crate) struct ListOffers {
    filter: OfferFilter,
    page: PageRequest<OfferId>,
}

impl Read<Public> for ListOffers {
    const SCOPE: &'static [Scope] = &[Scope::OffersRead];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(
            || page::schema("OfferPage", OfferView::schema()),
            || page::example(example!("offer")()),
        )),
        ..docs!("listOffers", "Offers")
    });
    const QUERY: &'static [Parameter] = &[
        page::LIMIT,
        page::AFTER,
        query::FIELDS,
        Parameter::new("status", offer_status),
        Parameter::new("updated_after", date_time),
        Parameter::new("external_id", || code_schema(OfferCode::EXTERNAL_ID)),
        Parameter::new("ean", || code_schema(OfferCode::EAN)),
        page::IDS,
    ];

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        incoming.query(|query| {
            let mut list = List::new("offers", call.caller.seller, query);
            // In this order: open cursors of the previous release name their list by it.
            let filter = OfferFilter {
                status: list.status(&OfferStatus::ALL, OfferStatus::as_str),
                updated_after: list.date_time("updated_after"),
                codes: OfferCode::ALL
                    .into_iter()
                    .filter_map(|code| Some((code, list.words(code.name(), code.max_length())?)))
                    .collect(),
            };
            let page = PageRequest::read(list, call);
            Some(Self { filter, page })
        })
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let Self { filter, page } = self;
        let (reader, offers) = (call.caller.reader(), &call.state.offers);
        let found = match &page.ids {
            Some(ids) => Page::whole(offers.offers_by_id(reader, ids).await?),
            None => offers.offers(reader, filter, page.after, page.size).await?,
        };
        page.reply(&call, &found, OfferView::new).await
    }
}

fn code_schema(code: OfferCode) -> Node {
    text_of(0..=code.max_length()).schema()
}

/// Changes price, stock, status or external id of one of the seller's offers: all that is sent, or nothing.
pub(crate) struct PatchOffer {
    id: OfferId,
    patch: OfferPatch,
}

/// How often a change with a key looks, while it waits for its turn, whether the key's first request is still
/// running.
const KEY_LOOKUP_INTERVAL: Duration = Duration::from_millis(300);

impl Write<Public> for PatchOffer {
    const SCOPE: &'static [Scope] = &[Scope::OffersWrite];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(|| patch().schema(), example!("offer_update"))),
        response: Some(JsonBody::new(OfferView::schema, example!("offer"))),
        is_tagged: true,
        refusals: &[
            || entry(PatchRefusal::OtherState).into(),
            || entry(PatchRefusal::NoPrice).into(),
            || entry(PatchRefusal::NoStock(StockChange::Set(Stock::default()))).into(),
            || entry(PatchRefusal::StockOutOfRange(Stock::default())).into(),
            || entry(PatchRefusal::StatusLocked(OfferStatus::Rejected)).into(),
        ],
        ..docs!("updateOffer", "Offers")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let (if_match, patch) = both(if_match(incoming.headers()), incoming.json(&patch()))?;
        let patch = OfferPatch { if_match, ..patch };
        Ok(incoming.id(0).map(|id| Self { id, patch }))
    }

    fn locks(&self, call: &Call<Public>) -> LockSet {
        LockSet::of_row(Row::Offer(call.caller.seller, self.id))
    }

    async fn try_unclaimed(&self, call: &Call<Public>, claim: &Claim) -> Result<Unclaimed, Error> {
        let Some(changes) = &call.state.offer_changes else {
            return Ok(Unclaimed::NeedsClaim);
        };
        let (seller, locks) = (call.caller.seller, self.locks(call));
        // Of two concurrent changes of an offer only one can win.
        let mut waiting = pin!(call.state.ports.units.turn(&locks, call.deadline.for_turn()));
        let (_turn, read) = loop {
            let turn = timeout(KEY_LOOKUP_INTERVAL, &mut waiting).await;
            let turn = turn.ok().transpose()?;
            let read = call
                .deadline
                .run(changes.read(seller, self.id, claim, call.deadline.for_turn()))
                .await??;
            if read.key != Claimed::Run {
                return Ok(Unclaimed::KeyUsed(read.key));
            }
            if let Some(turn) = turn {
                break (turn, read);
            }
        };
        let change = decide_patch(read.offer, self.patch.clone(), read.at).map_err(problem)?;
        let reply = reply(&change.change.after, call.fields)?;
        // Not dropped at the deadline: once it was sent, its outcome has to be known.
        let time_left = call.deadline.remaining();
        let stored = reply.to_stored_response(call.state.ports.is_finished());
        let saved = changes.save(change, claim, &stored, time_left).await?;
        Ok(if saved {
            Unclaimed::Saved(reply)
        } else {
            Unclaimed::NeedsClaim
        })
    }

    async fn apply(&self, call: &Call<Public>, transaction: &dyn Transaction) -> Result<Reply, Error> {
        let (seller, now) = (call.caller.seller, transaction.now());
        let patched = patch_offer(transaction, seller, self.id, self.patch.clone(), now).await;
        reply(&patched.map_refusal(problem)?, call.fields)
    }
}

fn patch() -> impl Shape<Value = OfferPatch> {
    changes().not_empty().named("OfferUpdate")
}

/// What may be changed of an offer, in the contract's order.
fn changes() -> ObjectShape<impl Fn(&mut Fields<'_, '_>) -> Option<OfferPatch>> {
    let status = one_of(&SellerStatus::ALL, |status| status.status().as_str())
        .named("SellerOfferStatus")
        .describe("Not for an offer that is `proposed` or `rejected`.");
    let external_id = text_of(1..=MAX_EXTERNAL_ID)
        .checked(offers::external_id)
        .map(ExternalIdChange::Set)
        .describe(
            "Your own name for the offer, such as a SKU, without control characters; `null` removes it.",
        );
    object!(
        price: optional(money().describe("Only for an offer that has a PLN price.")),
        stock: optional(stock().describe("Pieces. Only for an offer that has an inventory level.")),
        stock_adjustment: optional(
            stock_adjustment()
                .describe("Pieces to add to the stock of that moment, or to take away; not 0, and not beside `stock`.")
                .refined(|by, place| match stock {
                    Some(None) => Some(by),
                    _ => place.refuse("Send `stock` or `stock_adjustment`, not both."),
                })
        ),
        status: optional(status),
        external_id: resettable(external_id, ExternalIdChange::Clear)
        => {
            let adjustment = stock_adjustment.map(StockChange::Adjust);
            let stock = stock.map(StockChange::Set).or(adjustment);
            OfferPatch { price, stock, status, external_id, if_match: None }
        }
    )
}

fn problem(refusal: OfferChangeRefusal<Vec<PatchRefusal>>) -> Problem {
    match refusal {
        OfferChangeRefusal::NoSuchOffer => Problem::not_found(),
        OfferChangeRefusal::Rules(reasons) => Problem::of(reasons.into_iter().map(entry)),
    }
}

fn entry(reason: PatchRefusal) -> Entry {
    match reason {
        PatchRefusal::OtherState => Entry::other_state(),
        PatchRefusal::NoPrice => {
            let message = "This offer has no PLN price, and the API cannot create one.";
            Entry::new(Code::NoPriceRow, message).at("price")
        }
        PatchRefusal::NoStock(change) => {
            let message = "This offer has no inventory level, and the API cannot create one.";
            Entry::new(Code::NoInventoryRow, message).at(match change {
                StockChange::Set(_) => "stock",
                StockChange::Adjust(_) => "stock_adjustment",
            })
        }
        PatchRefusal::StockOutOfRange(present) => {
            let message = format!(
                "The stock is {}, and must stay from 0 to 2147483647.",
                present.get()
            );
            Entry::new(Code::StockOutOfRange, message).at("stock_adjustment")
        }
        PatchRefusal::StatusLocked(status) => {
            let status = status.as_str();
            let message = format!("This offer is {status}: only moderation can change its status.");
            Entry::new(Code::StatusLockedByModeration, message).at("status")
        }
    }
}
