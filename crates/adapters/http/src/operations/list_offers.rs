//! `GET /v1/offers`

use actix_web::http::{Method, StatusCode};
use kernel::{Keyset, PageSize};
use oauth::Scope;
use offers::{OfferFilter, OfferStatus};
use web::Violations;
use web::query::{self, Selection};
use web::schema::date_time;

use super::page::{self, after};
use super::{OfferView, PageView, offer_view};
use crate::cursor::List;
use crate::declared::{Declared, Parameter, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Reads a page of the seller's offers, newest first.
pub(crate) struct ListOffers {
    filter: OfferFilter,
    after: Option<Keyset>,
    size: PageSize,
    fields: Selection,
}

impl Operation for ListOffers {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/offers";
    const SCOPE: Option<Scope> = Some(Scope::OffersRead);
    const PARAMETERS: &'static [&'static str] = &["limit", "after", "fields", "status", "updated_after"];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "listOffers",
        tag: Tag::Offers,
        summary: "List offers",
        description: "The newest first.",
        resource: None,
        parameters: &[
            page::LIMIT,
            page::AFTER,
            Parameter::FIELDS,
            Parameter {
                name: "status",
                description: "Offers of this status alone.",
                schema: offer_view::status,
                deprecated: None,
            },
            Parameter {
                name: "updated_after",
                description: "Offers that changed after this instant. A client that polls sends an instant some 60 s before the last one it has seen, and drops what it knows.",
                schema: date_time,
                deprecated: None,
            },
        ],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "A page of offers.",
            schema: || page::schema("OfferPage", OfferView::schema()),
            example: || page::example(offer_view::example()),
        },
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, context: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| {
            let filter = OfferFilter {
                status: query.one_of("status", &OfferStatus::ALL, OfferStatus::as_str),
                updated_after: query.date_time("updated_after"),
            };
            let list = List::offers(context.principal.seller, &filter);
            Self {
                filter,
                after: after(query, context, &list),
                size: PageSize::clamped(query.limit().into()),
                fields: query.fields(Self::FIELDS),
            }
        })
    }
}

impl Read for ListOffers {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let seller = context.principal.seller;
        let offers = &context.public.offers;
        let page = offers.offers(seller, self.filter, self.after, self.size).await?;
        let list = List::offers(seller, &self.filter);
        PageView::new(&page, self.fields, OfferView::new, OfferView::USUAL_LENGTH).reply(&context, &list)
    }
}
