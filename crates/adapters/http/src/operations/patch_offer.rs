//! `PATCH /v1/offers/{id}`

use actix_web::http::{Method, StatusCode};
use kernel::{Currency, MAX_AMOUNT, Money, OfferId};
use oauth::Scope;
use offers::{OfferPatch, OfferStatus, PatchRefusal, SellerStatus, Stock};
use usecases::Transaction;
use usecases::patch_offer::{self, patch_offer};
use web::decode::{Described, Shape, integer, object, one_of, optional, required};
use web::query::{self, Selection};
use web::schema::Node;
use web::{Code, Entry, Problem, Violations, sentence};

use super::{OfferView, offer_view};
use crate::deadline::Deadline;
use crate::declared::{Body, Declared, Parameter, Resource, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Reply, Write};
use crate::refusal::{Refusal, Refused};

/// Changes price, stock or status of one of the seller's offers, all that is sent or nothing.
pub(crate) struct PatchOffer {
    /// Nothing where no offer can have the id.
    id: Option<OfferId>,
    patch: OfferPatch,
    fields: Selection,
}

impl Operation for PatchOffer {
    const METHOD: Method = Method::PATCH;
    const TEMPLATE: &'static str = "/v1/offers/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OffersWrite);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "updateOffer",
        tag: Tag::Offers,
        summary: "Change price, stock or status",
        description: "Only what is sent changes, and all of it or nothing. A price that is set so is manual: automatic pricing leaves it alone. Values that are the same already move nothing.",
        resource: Some(Resource::OFFER),
        parameters: &[Parameter::FIELDS],
        body: Some(Body {
            schema: || body().schema(),
            example: || Node::parse(r#"{"price": {"amount": 12900, "currency": "PLN"}, "stock": 14}"#),
        }),
        success: Success::Json {
            status: StatusCode::OK,
            description: "The offer as it is now.",
            schema: OfferView::schema,
            example: offer_view::example,
        },
        deprecated: None,
        refusals: &[
            || entry(PatchRefusal::NoPrice).into(),
            || entry(PatchRefusal::NoStock).into(),
            || entry(PatchRefusal::StatusLocked(OfferStatus::Rejected)).into(),
        ],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        let fields = query::read(incoming.query, Self::PARAMETERS, |query| {
            query.fields(Self::FIELDS)
        });
        let (fields, patch) = incoming.with_json(fields, &body())?;
        Ok(Self {
            id: incoming.id(),
            patch,
            fields,
        })
    }
}

impl Write for PatchOffer {
    type Prepared = OfferId;

    async fn prepare(&self, _: &Context, _: &mut Deadline) -> Result<OfferId, Refusal> {
        Ok(self.id.ok_or_else(Problem::not_found)?)
    }

    async fn apply(
        &self,
        id: &OfferId,
        context: &Context,
        transaction: &dyn Transaction,
    ) -> Result<Reply, Refusal> {
        let (seller, now) = (context.principal.seller, transaction.now());
        let offer = patch_offer(transaction, seller, *id, self.patch, now).await?;
        Reply::ok(&OfferView::new(&offer, self.fields), OfferView::USUAL_LENGTH)
    }
}

fn body() -> impl Described<Value = OfferPatch> {
    let stock = integer(0..=i64::from(i32::MAX))
        .checked(|pieces| Stock::new(pieces).map_err(|invalid| sentence::of(&invalid)))
        .saying(|schema| schema.said("Pieces. Only of an offer that has an inventory level."));
    object((
        optional(
            "price",
            money().saying(|schema| schema.said("Only of an offer that has a PLN price.")),
        ),
        optional("stock", stock),
        optional(
            "status",
            one_of(&SellerStatus::ALL, |status| status.status().as_str()).saying(|schema| {
                let schema = schema.named("SellerOfferStatus");
                schema.said("Not of an offer that is `proposed` or `rejected`.")
            }),
        ),
    ))
    .not_empty()
    .map(|(price, stock, status)| OfferPatch { price, stock, status })
    .saying(|schema| schema.named("OfferUpdate"))
}

/// Contract: Money. The marketplace trades in one currency (D24).
fn money() -> impl Described<Value = Money> {
    object((
        required(
            "amount",
            integer(0..=MAX_AMOUNT)
                .checked(Money::pln)
                .saying(|schema| schema.said("In the minor unit: grosze.")),
        ),
        required(
            "currency",
            one_of(&[Currency::Pln], Currency::code)
                .saying(|schema| schema.said("ISO 4217.").named("Currency")),
        ),
    ))
    .map(|(money, Currency::Pln)| money)
    .saying(|schema| schema.said("An amount of money, to be set.").named("NewPrice"))
}

impl Refused for patch_offer::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchOffer => Problem::not_found(),
            Self::Rules(reasons) => Problem::of(reasons.into_iter().map(entry)),
        }
    }
}

fn entry(reason: PatchRefusal) -> Entry {
    match reason {
        PatchRefusal::NoPrice => Entry::new(
            Code::NoPriceRow,
            "This offer has no PLN price. The API changes a price, it never makes one.",
        )
        .at("price"),
        PatchRefusal::NoStock => Entry::new(
            Code::NoInventoryRow,
            "This offer has no inventory level. The API changes a stock, it never makes one.",
        )
        .at("stock"),
        PatchRefusal::StatusLocked(status) => Entry::new(
            Code::StatusLockedByModeration,
            format!(
                "This offer is {}, so its status is moderation's to change.",
                status.as_str()
            ),
        )
        .at("status"),
    }
}
