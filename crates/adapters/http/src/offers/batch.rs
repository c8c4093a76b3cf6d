//! Changes of many offers in one request: each is made whole or not at all, and all that are made become
//! durable together.

use std::iter;

use actix_web::http::StatusCode;
use kernel::OfferId;
use oauth::Scope;
use offers::{IfMatch, Offer, OfferPatch};
use usecases::change_offer::{OfferChangeRefusal, Patched, patch_offers};
use usecases::{LockSet, Transaction};
use web::decode::{Shape, list, object, text};
use web::openapi::{Docs, JsonBody};
use web::operation::{Call, Incoming, Write};
use web::query::Selection;
use web::reply::Reply;
use web::resources::OfferView;
use web::schema::{self, Node, array, string};
use web::view::View;
use web::{Entry, Error, Problem, Violations};

use super::PatchOffer;
use crate::documents::{docs, example};
use crate::{Public, openapi};

/// The most offers of a request.
const MAX_ITEMS: usize = 100;

/// Changes several of the seller's offers.
pub(crate) struct PatchOffers(Vec<Item>);

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

impl Write<Public> for PatchOffers {
    const SCOPE: &'static [Scope] = &[Scope::OffersWrite];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(|| batch().schema(), example!("offer_batch"))),
        response: Some(JsonBody::new(BatchView::schema, example!("offer_batch_answer"))),
        ..docs!("updateOffers", "Offers")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        incoming.json(&batch()).map(|items| Some(Self(items)))
    }

    fn locks(&self, call: &Call<Public>) -> LockSet {
        let offers = self.0.iter().filter_map(Item::offer);
        LockSet::of_offers(offers.map(|offer| (call.caller.seller, offer)))
    }

    async fn apply(&self, call: &Call<Public>, transaction: &dyn Transaction) -> Result<Reply, Error> {
        let patches = self.0.iter().map(|item| (item.offer(), item.patch.clone()));
        let patches: Vec<_> = patches.collect();
        let (seller, now) = (call.caller.seller, transaction.now());
        let outcomes = patch_offers(transaction, seller, &patches, now).await?;
        let outcomes: Vec<_> = outcomes.into_iter().map(ItemOutcome::of).collect();
        Reply::ok(&BatchView::whole((&self.0, &outcomes, call.fields)))
    }
}

fn batch() -> impl Shape<Value = Vec<Item>> {
    object!(items: required(list(item(), 1..=MAX_ITEMS)) => items).named("OfferBatch")
}

/// The ids of all items must be distinct.
fn item() -> impl Shape<Value = Item> {
    let offer = text()
        .describe("The offer's id.")
        .distinct("This id is listed twice: send one change for each offer.");
    let tag = text()
        .checked(|text: String| IfMatch::parse(&text))
        .describe("As `If-Match` of a single change: the offer's `etag`, or `*`.");
    object!(
        id: required(offer),
        patch: flattened(super::changes()),
        if_match: optional(tag)
        => (id, patch, if_match)
    )
    .refined(|(id, patch, if_match), place| {
        if patch == OfferPatch::default() {
            return place.refuse("Send at least one change besides `id` and `if_match`.");
        }
        let patch = OfferPatch { if_match, ..patch };
        Some(Item { id, patch })
    })
    .map_schema(|schema| schema.with("minProperties", 2))
    .named("OfferChange")
}

/// What became of a change.
struct ItemOutcome {
    status: StatusCode,
    offer: Option<Offer>,
    problem: Option<Problem>,
}

impl ItemOutcome {
    fn of(Patched { offer, refusals }: Patched) -> Self {
        let refusal = match offer {
            None => Some(OfferChangeRefusal::NoSuchOffer),
            Some(_) if refusals.is_empty() => None,
            Some(_) => Some(OfferChangeRefusal::Rules(refusals)),
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
    OutcomeView<'a> of (item, outcome, fields): (&'a Item, &'a ItemOutcome, Selection),
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

/// As `PATCH` refuses.
fn error() -> Node {
    let refusals = <PatchOffer as Write<Public>>::DOCS
        .into_iter()
        .flat_map(|docs| docs.refusals);
    let problems = iter::once(Problem::not_found()).chain(refusals.map(|refusal| refusal()));
    let codes: Vec<_> = problems
        .filter_map(|problem| problem.entries().first().map(Entry::code))
        .collect();
    let schema = string()
        .one_of(codes.iter().map(|code| code.as_str()))
        .extensible()
        .describe("Further codes may come.");
    openapi::errors::entry("OfferChange", schema, &codes)
}

web::view! {
    BatchView<'a> of (items, outcomes, fields): (&'a [Item], &'a [ItemOutcome], Selection), named "OfferBatchAnswer" {
        "items": array(OutcomeView::schema())
            => items.iter().zip(*outcomes).map(|(item, outcome)| OutcomeView::whole((item, outcome, *fields))).collect::<Vec<_>>(),
    }
}
