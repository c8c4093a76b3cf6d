//! `GET /v1/orders/{id}`

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use orders::OrderRef;
use web::query::{self, Selection};
use web::{Problem, Violations};

use super::{OrderView, order_view};
use crate::declared::{Declared, Parameter, Resource, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Reads the seller's part of an order, named by id or number; a test order too.
pub(crate) struct ReadOrder {
    /// Nothing where no order can be named so.
    order: Option<OrderRef>,
    fields: Selection,
}

impl Operation for ReadOrder {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/orders/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = OrderView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "getOrder",
        tag: Tag::Orders,
        summary: "Read an order",
        description: "The seller's part of an order; of a test order too. `buyer` and `shipping_address` are `null` until it is paid, and where it was cancelled unpaid.",
        resource: Some(Resource::ORDER),
        parameters: &[Parameter::FIELDS],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "The order.",
            schema: OrderView::schema,
            example: order_view::example,
        },
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| Self {
            order: incoming.named(OrderRef::parse),
            fields: query.fields(Self::FIELDS),
        })
    }
}

impl Read for ReadOrder {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let named = self.order.ok_or_else(Problem::not_found)?;
        let orders = &context.public.orders;
        let order = orders.order(context.principal.seller, &named).await?;
        let order = order.ok_or_else(Problem::not_found)?;
        Reply::ok(&OrderView::new(&order, self.fields), OrderView::USUAL_LENGTH)
    }
}
