//! Erasing a buyer's personal data.

use async_trait::async_trait;
use orders::{OrderRef, SellerOrder};
use usecases::erase_buyer::{self, erase_buyer};
use usecases::{ActingOperator, Failure, Transaction, Work};
use web::Problem;

use super::view::OrderView;
use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;

/// `POST /orders/{order}/buyer-erasure`
pub(crate) struct EraseBuyer;

impl Operation for EraseBuyer {
    type Input = OrderRef;

    fn decode(parts: &Parts<'_>) -> Result<OrderRef, Refusal> {
        parts.nothing()?;
        Ok(parts.order(0)?)
    }

    async fn execute(order: OrderRef, context: Context) -> Result<Reply, Refusal> {
        let answer = |parts: Vec<SellerOrder>| Reply::ok(&OrderView::of(&parts));
        let work = Erase(context.operator()?, order);
        context.write(work, answer).await
    }
}

struct Erase(ActingOperator, OrderRef);

#[async_trait]
impl Work for Erase {
    type Done = Vec<SellerOrder>;
    type Error = Failure<erase_buyer::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Vec<SellerOrder>, Self::Error> {
        erase_buyer((tx, tx, tx), self.0, &self.1, tx.now()).await
    }
}

impl Refused for erase_buyer::Refusal {
    fn problem(self) -> Problem {
        let Self::NoSuchOrder = self;
        Problem::not_found()
    }
}
