//! `GET /v1/offers`

use actix_web::http::Method;
use kernel::{Keyset, Page, PageSize};
use oauth::Scope;
use offers::{Offer, OfferFilter, OfferStatus};
use serde::{Serialize, Serializer};
use web::Violations;
use web::query::{self, Query, Selection};

use super::OfferView;
use crate::cursor;
use crate::operation::{Context, Effect, Incoming, Operation, Reply};
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
    const EFFECT: Effect = Effect::Read;
    const PARAMETERS: &'static [&'static str] = &["limit", "after", "fields", "status", "updated_after"];
    const FIELDS: &'static [&'static str] = OfferView::FIELDS;

    fn decode(incoming: &Incoming<'_>, context: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| {
            let filter = OfferFilter {
                status: query.one_of("status", &OfferStatus::ALL, OfferStatus::as_str),
                updated_after: query.date_time("updated_after"),
            };
            Self {
                filter,
                after: after(query, context, &filter),
                size: PageSize::clamped(query.limit().into()),
                fields: query.fields(Self::FIELDS),
            }
        })
    }

    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let seller = context.principal.seller;
        let offers = &context.public.offers;
        let page = offers.offers(seller, self.filter, self.after, self.size).await?;
        let list = cursor::List::offers(seller, &self.filter);
        let next = page
            .next
            .map(|last| cursor::seal(context.public.sealer.as_ref(), &list, last));
        let items = Items {
            page: &page,
            fields: self.fields,
        };
        let expected = page
            .items
            .len()
            .saturating_add(1)
            .saturating_mul(OfferView::USUAL_LENGTH);
        Reply::ok(&PageView { items, next }, expected)
    }
}

fn after(query: &mut Query<'_>, context: &Context, filter: &OfferFilter) -> Option<Keyset> {
    query.parsed("after", |text| {
        let list = cursor::List::offers(context.principal.seller, filter);
        cursor::open(context.public.sealer.as_ref(), &list, text).ok_or(cursor::REFUSED)
    })
}

#[derive(Serialize)]
struct PageView<'a> {
    items: Items<'a>,
    next: Option<String>,
}

struct Items<'a> {
    page: &'a Page<Offer>,
    fields: Selection,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items = self.page.items.iter();
        serializer.collect_seq(items.map(|offer| OfferView::new(offer, self.fields)))
    }
}
