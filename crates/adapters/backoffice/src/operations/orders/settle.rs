//! The moves over a whole order: payment, cancellation, delivery.

use std::marker::PhantomData;

use async_trait::async_trait;
use orders::{OrderRef, SellerOrder};
use usecases::settle_order::{self, Settlement, settle_order};
use usecases::{Failure, Transaction, Work};
use web::Problem;

use super::impossible;
use super::view::OrderView;
use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;

/// `POST /orders/{order}/payment`
pub(crate) type BookPayment = Settle<Payment>;
/// `POST /orders/{order}/cancellation`
pub(crate) type CancelOrder = Settle<Cancellation>;
/// `POST /orders/{order}/delivery`
pub(crate) type DeliverOrder = Settle<Delivery>;

/// An operation that is a move over every part.
pub(crate) struct Settle<S>(PhantomData<S>);

/// Which move it is.
pub(crate) trait Step: 'static {
    const SETTLEMENT: Settlement;
}

pub(crate) struct Payment;

impl Step for Payment {
    const SETTLEMENT: Settlement = Settlement::Pay;
}

pub(crate) struct Cancellation;

impl Step for Cancellation {
    const SETTLEMENT: Settlement = Settlement::Cancel;
}

pub(crate) struct Delivery;

impl Step for Delivery {
    const SETTLEMENT: Settlement = Settlement::Deliver;
}

impl<S: Step> Operation for Settle<S> {
    type Input = OrderRef;

    fn decode(parts: &Parts<'_>) -> Result<OrderRef, Refusal> {
        parts.nothing()?;
        Ok(parts.order(0)?)
    }

    async fn execute(order: OrderRef, context: Context) -> Result<Reply, Refusal> {
        let work = SettleOrder {
            order,
            step: S::SETTLEMENT,
        };
        // An order that has no parts was refused, so there always is something to show.
        let answer = |parts: Vec<SellerOrder>| Reply::ok(&OrderView::impersonal(&parts));
        context.write(work, answer).await
    }
}

struct SettleOrder {
    order: OrderRef,
    step: Settlement,
}

#[async_trait]
impl Work for SettleOrder {
    type Done = Vec<SellerOrder>;
    type Error = Failure<settle_order::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Vec<SellerOrder>, Self::Error> {
        settle_order(tx, tx, &self.order, self.step, tx.now()).await
    }
}

impl Refused for settle_order::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchOrder => Problem::not_found(),
            Self::Impossible(refused) => impossible(refused),
        }
    }
}
