//! `GET /v1/offers/{id}`

use actix_web::http::{Method, StatusCode};
use kernel::OfferId;
use oauth::Scope;
use web::query::{self, Selection};
use web::{Problem, Violations};

use super::{OfferView, offer_view};
use crate::declared::{Declared, Parameter, Resource, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Reads one of the seller's offers.
pub(crate) struct ReadOffer {
    /// Nothing where no offer can have the id.
    id: Option<OfferId>,
    fields: Selection,
}

impl Operation for ReadOffer {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/offers/{id}";
    const SCOPE: Option<Scope> = Some(Scope::OffersRead);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "getOffer",
        tag: Tag::Offers,
        summary: "Read an offer",
        description: "One of the seller's offers.",
        resource: Some(Resource::OFFER),
        parameters: &[Parameter::FIELDS],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "The offer.",
            schema: OfferView::schema,
            example: offer_view::example,
        },
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| Self {
            id: incoming.id(),
            fields: query.fields(Self::FIELDS),
        })
    }
}

impl Read for ReadOffer {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let id = self.id.ok_or_else(Problem::not_found)?;
        let offers = &context.public.offers;
        let offer = offers.offer(context.principal.seller, id).await?;
        let offer = offer.ok_or_else(Problem::not_found)?;
        Reply::ok(&OfferView::new(&offer, self.fields), OfferView::USUAL_LENGTH)
    }
}
