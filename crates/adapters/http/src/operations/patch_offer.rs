//! `PATCH /v1/offers/{id}`

use actix_web::http::Method;
use kernel::{Currency, MAX_AMOUNT, Money, OfferId};
use oauth::Scope;
use offers::{OfferPatch, PatchRefusal, SellerStatus, Stock};
use usecases::Transaction;
use usecases::patch_offer::{self, patch_offer};
use web::decode::{Shape, integer, object, one_of, optional, required};
use web::query::{self, Selection};
use web::{Code, Entry, Problem, Violations};

use super::OfferView;
use crate::deadline::Deadline;
use crate::operation::{Context, Incoming, Operation, Reply, Write};
use crate::refusal::{Refusal, Refused};
use crate::sentence;

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

fn body() -> impl Shape<Value = OfferPatch> {
    let stock = integer(0..=i64::from(i32::MAX))
        .checked(|pieces| Stock::new(pieces).map_err(|invalid| sentence::of(&invalid)));
    object((
        optional("price", money()),
        optional("stock", stock),
        optional(
            "status",
            one_of(&SellerStatus::ALL, |status| status.status().as_str()),
        ),
    ))
    .not_empty()
    .map(|(price, stock, status)| OfferPatch { price, stock, status })
}

/// Contract: Money. The marketplace trades in one currency (D24).
fn money() -> impl Shape<Value = Money> {
    object((
        required("amount", integer(0..=MAX_AMOUNT).checked(Money::pln)),
        required("currency", one_of(&[Currency::Pln], Currency::code)),
    ))
    .map(|(money, Currency::Pln)| money)
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
