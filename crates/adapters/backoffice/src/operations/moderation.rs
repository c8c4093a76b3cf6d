//! The marketplace's own moves over an offer: moderation, and the pricing engine's price.

use async_trait::async_trait;
use kernel::{Money, OfferId, SellerId};
use offers::{AutomaticPriceRefusal, Decision, Offer};
use usecases::moderate_offer::{self, moderate_offer, price_offer};
use usecases::{Failure, Transaction, Work};
use web::decode::{Shape, object, one_of, required};
use web::{Code, Entry, Problem, sentence};

use super::offers::OfferView;
use crate::money::money;
use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;

/// `POST /sellers/{seller}/offers/{offer}/moderation`
pub(crate) struct Moderate;

impl Operation for Moderate {
    type Input = Move;

    fn decode(parts: &Parts<'_>) -> Result<Move, Refusal> {
        let decisions = &[Decision::Propose, Decision::Approve, Decision::Reject];
        let body = object((required("decision", one_of(decisions, name)),));
        let step = parts.json(&body.map(|(decision,)| Step::Decide(decision)))?;
        Move::of(parts, step)
    }

    async fn execute(input: Move, context: Context) -> Result<Reply, Refusal> {
        context.write(input, shown).await
    }
}

const fn name(decision: Decision) -> &'static str {
    match decision {
        Decision::Propose => "propose",
        Decision::Approve => "approve",
        Decision::Reject => "reject",
    }
}

/// `POST /sellers/{seller}/offers/{offer}/automatic-price`
pub(crate) struct SetAutomaticPrice;

impl Operation for SetAutomaticPrice {
    type Input = Move;

    fn decode(parts: &Parts<'_>) -> Result<Move, Refusal> {
        let body = object((required("price", money()),));
        let step = parts.json(&body.map(|(price,)| Step::Price(price)))?;
        Move::of(parts, step)
    }

    async fn execute(input: Move, context: Context) -> Result<Reply, Refusal> {
        context.write(input, shown).await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an answer takes what was done")]
fn shown(offer: Offer) -> Result<Reply, serde_json::Error> {
    Reply::ok(&OfferView::from(&offer))
}

/// What is done to which offer.
pub(crate) struct Move {
    seller: SellerId,
    offer: OfferId,
    step: Step,
}

enum Step {
    Decide(Decision),
    Price(Money),
}

impl Move {
    fn of(parts: &Parts<'_>, step: Step) -> Result<Self, Refusal> {
        Ok(Self {
            seller: parts.id(0)?,
            offer: parts.id(1)?,
            step,
        })
    }
}

#[async_trait]
impl Work for Move {
    type Done = Offer;
    type Error = Failure<moderate_offer::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Offer, Self::Error> {
        let (seller, offer) = (self.seller, self.offer);
        match self.step {
            Step::Decide(decision) => moderate_offer(tx, seller, offer, decision, tx.now()).await,
            Step::Price(price) => price_offer(tx, seller, offer, price, tx.now()).await,
        }
    }
}

impl Refused for moderate_offer::Refusal {
    fn problem(self) -> Problem {
        let message = sentence::of(&self);
        let code = match self {
            Self::NoSuchOffer => return Problem::not_found(),
            Self::Price(AutomaticPriceRefusal::NoPrice) => Code::NoPriceRow,
            Self::Price(AutomaticPriceRefusal::Manual) => Code::PriceIsManual,
        };
        Entry::new(code, message).at("price").into()
    }
}
