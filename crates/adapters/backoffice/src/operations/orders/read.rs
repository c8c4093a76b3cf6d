//! Reading an order back.

use orders::OrderRef;
use web::Problem;

use super::view::OrderView;
use crate::operation::{Context, Operation};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;

/// `GET /orders/{order}`
pub(crate) struct ReadOrder;

impl Operation for ReadOrder {
    type Input = OrderRef;

    fn decode(parts: &Parts<'_>) -> Result<OrderRef, Refusal> {
        parts.no_query()?;
        Ok(parts.order(0)?)
    }

    async fn execute(order: OrderRef, context: Context) -> Result<Reply, Refusal> {
        let parts = context.office.orders.parts(&order).await?;
        let order = OrderView::of(&parts).ok_or_else(Problem::not_found)?;
        Ok(Reply::ok(&order)?)
    }
}
