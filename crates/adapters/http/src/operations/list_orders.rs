//! `GET /v1/orders`

use actix_web::http::{Method, StatusCode};
use kernel::{Keyset, PageSize};
use oauth::Scope;
use orders::{OrderFilter, OrderStatus};
use web::Violations;
use web::query::{self, Selection};
use web::schema::date_time;

use super::page::{self, after};
use super::{OrderView, PageView, order_view};
use crate::cursor::List;
use crate::declared::{Declared, Parameter, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Reads a page of the seller's orders, newest first, without test orders.
pub(crate) struct ListOrders {
    filter: OrderFilter,
    after: Option<Keyset>,
    size: PageSize,
    fields: Selection,
}

impl Operation for ListOrders {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/orders";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const PARAMETERS: &'static [&'static str] = &[
        "limit",
        "after",
        "fields",
        "status",
        "placed_after",
        "updated_after",
    ];
    const FIELDS: &'static [&'static str] = OrderView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "listOrders",
        tag: Tag::Orders,
        summary: "List orders",
        description: "The newest first, without test orders.",
        resource: None,
        parameters: &[
            page::LIMIT,
            page::AFTER,
            Parameter::FIELDS,
            Parameter {
                name: "status",
                description: "Orders of this status alone.",
                schema: order_view::status,
                deprecated: None,
            },
            Parameter {
                name: "placed_after",
                description: "Orders that were placed after this instant.",
                schema: date_time,
                deprecated: None,
            },
            Parameter {
                name: "updated_after",
                description: "Orders that changed after this instant. A client that polls sends an instant some 60 s before the last one it has seen, and drops what it knows.",
                schema: date_time,
                deprecated: None,
            },
        ],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "A page of orders.",
            schema: || page::schema("OrderPage", OrderView::schema()),
            example: || page::example(order_view::example()),
        },
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, context: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| {
            let filter = OrderFilter {
                status: query.one_of("status", &OrderStatus::ALL, OrderStatus::as_str),
                placed_after: query.date_time("placed_after"),
                updated_after: query.date_time("updated_after"),
            };
            let list = List::orders(context.principal.seller, &filter);
            Self {
                filter,
                after: after(query, context, &list),
                size: PageSize::clamped(query.limit().into()),
                fields: query.fields(Self::FIELDS),
            }
        })
    }
}

impl Read for ListOrders {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let seller = context.principal.seller;
        let orders = &context.public.orders;
        let page = orders.orders(seller, self.filter, self.after, self.size).await?;
        let list = List::orders(seller, &self.filter);
        PageView::new(&page, self.fields, OrderView::new, OrderView::USUAL_LENGTH).reply(&context, &list)
    }
}
