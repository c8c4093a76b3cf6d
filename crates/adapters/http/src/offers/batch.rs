//! Changes of many offers in one request: each is made whole or not at all, and all that are made become
//! durable together.

use std::cell::RefCell;
use std::collections::HashSet;

use actix_web::http::StatusCode;
use kernel::OfferId;
use oauth::Scope;
use offers::{IfMatch, Offer, OfferPatch};
use usecases::change_offer::{self, Patched, patch_offers};
use usecases::{LockSet, Transaction};
use web::decode::{ObjectShape, Shape, list, object, text};
use web::openapi::{Docs, JsonBody};
use web::operation::{Call, Incoming, Operation, Write};
use web::query::Selection;
use web::reply::Reply;
use web::resources::OfferView;
use web::schema::{self, Node, array, string};
use web::view::View;
use web::{Code, Error, Problem, Violations};

use crate::documents::{docs, example};
use crate::{Public, openapi};

/// The most offers of a request.
const MAX_ITEMS: usize = 100;
/// The usual length of an item of the answer, in bytes.
const ITEM_LENGTH: usize = 896;

/// The codes of a change's refusals: see [`super::problem`].
const CODES: [Code; 6] = [
    Code::NotFound,
    Code::PreconditionFailed,
    Code::NoPriceRow,
    Code::NoInventoryRow,
    Code::StockOutOfRange,
    Code::StatusLockedByModeration,
];

/// Changes several of the seller's offers.
pub(crate) struct PatchOffers {
    items: Vec<Item>,
    fields: Selection,
}

/// A change, and what was sent as the offer's id.
struct Item {
    id: String,
    patch: OfferPatch,
}

impl Item {
    /// None if no offer can have the id.
    fn offer(&self) -> Option<OfferId> {
        self.id.parse().ok()
    }
}

impl Operation<Public> for PatchOffers {
    const SCOPE: &'static [Scope] = &[Scope::OffersWrite];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(|| batch().schema(), example!("offer_batch"))),
        response: Some(JsonBody::new(BatchView::schema, example!("offer_batch_answer"))),
        ..docs!("updateOffers", "Offers")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let fields = incoming.query(Self::QUERY, |query| query.fields(Self::FIELDS));
        let (fields, items) = incoming.json(fields, &batch())?;
        Ok(Some(Self { items, fields }))
    }
}

impl Write<Public> for PatchOffers {
    fn locks(&self, call: &Call<Public>) -> LockSet {
        let offers = self.items.iter().filter_map(Item::offer);
        LockSet::of_offers(offers.map(|offer| (call.caller.seller, offer)))
    }

    async fn apply(&self, call: &Call<Public>, transaction: &dyn Transaction) -> Result<Reply, Error> {
        let patches: Vec<_> = self
            .items
            .iter()
            .map(|item| (item.offer(), item.patch.clone()))
            .collect();
        let (seller, now) = (call.caller.seller, transaction.now());
        let outcomes = patch_offers(transaction, seller, &patches, now).await?;
        let outcomes: Vec<_> = outcomes.into_iter().map(Outcome::of).collect();
        let body = BatchView::whole((&self.items, &outcomes, self.fields));
        let usual_length = self.items.len().saturating_mul(ITEM_LENGTH);
        Reply::json(StatusCode::OK, &body, usual_length)
    }
}

fn batch() -> impl Shape<Value = Vec<Item>> {
    object!(items: required(list(item()).at_least(1).at_most(MAX_ITEMS)) => items).named("OfferBatch")
}

/// The ids of all items must be distinct.
fn item() -> impl Shape<Value = Item> {
    let seen = RefCell::new(HashSet::new());
    let offer = text().describe("The offer's id.").refined(move |id, place| {
        if seen.borrow_mut().insert(id.clone()) {
            Some(id)
        } else {
            place.refuse("This id is listed twice: send one change for each offer.")
        }
    });
    ObjectShape::new(move |fields| {
        let id = fields.required("id", &offer);
        let changes = super::changes(fields);
        let tag = text().checked(|text: String| IfMatch::parse(&text));
        let tag = tag.describe("As `If-Match` of a single change: the offer's `etag`, or `*`.");
        let if_match = fields.optional("if_match", &tag);
        Some((id?, changes?, if_match?))
    })
    .refined(|(id, changes, if_match), place| {
        if matches!(changes, (None, None, None, None, None)) {
            return place.refuse("Send at least one change besides `id` and `if_match`.");
        }
        let patch = super::whole(changes, if_match);
        Some(Item { id, patch })
    })
    .map_schema(|schema| schema.with("minProperties", 2))
    .named("OfferChange")
}

/// What became of a change.
struct Outcome {
    status: StatusCode,
    offer: Option<Offer>,
    problem: Option<Problem>,
}

impl Outcome {
    fn of(Patched { offer, refusals }: Patched) -> Self {
        let refusal = match offer {
            None => Some(change_offer::Refusal::NoSuchOffer),
            Some(_) if refusals.is_empty() => None,
            Some(_) => Some(change_offer::Refusal::Rules(refusals)),
        };
        let problem = refusal.map(super::problem);
        let status = problem.as_ref().map_or(StatusCode::OK, Problem::status);
        let is_shown = matches!(status, StatusCode::OK | StatusCode::PRECONDITION_FAILED);
        Self {
            status,
            offer: offer.filter(|_| is_shown),
            problem,
        }
    }
}

web::view! {
    /// An item of the answer.
    OutcomeView<'a> of (item, outcome, fields): (&'a Item, &'a Outcome, Selection),
        named "OfferChangeOutcome", "What became of a change."
    {
        "id": string().describe("As sent.") => item.id,
        "http_status": schema::integer(200, 599).describe("What `PATCH` would have answered: 200, 404, 412 or 422.").example(200)
            => outcome.status.as_u16(),
        "offer": OfferView::schema().named("ChangedOffer").or_null().describe("After the change; with 412 as it is; else `null`.")
            => outcome.offer.as_ref().map(|offer| OfferView::new(offer, *fields)),
        "errors": array(error()).or_null().describe("Why the change was refused; `null` if it was made.")
            => outcome.problem.as_ref().map(Problem::entries),
    }
}

fn error() -> Node {
    let codes = string()
        .one_of(CODES.map(Code::as_str))
        .extensible()
        .describe("Further codes may come.");
    openapi::errors::entry("OfferChange", codes, &CODES)
}

web::view! {
    BatchView<'a> of (items, outcomes, fields): (&'a [Item], &'a [Outcome], Selection), named "OfferBatchAnswer" {
        "items": array(OutcomeView::schema())
            => items.iter().zip(*outcomes).map(|(item, outcome)| OutcomeView::whole((item, outcome, *fields))).collect::<Vec<_>>(),
    }
}
