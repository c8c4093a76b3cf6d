//! `/panel/deliveries`: what applications are told by webhooks, how that went, and what is sent by hand.

mod listed;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use url::form_urlencoded::Serializer;
use usecases::ActingSeller;
use usecases::own_deliveries::{self, Refusal as Refused};
use usecases::sent_form::{NumberUsed, SentForm};
use webhooks::{DeliveryFilter, DeliveryId, SubscriptionId};

use self::listed::{Listed, Receiver};
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::Member;

const PAGE: &str = "/panel/deliveries";
/// How many deliveries are shown.
const MOST: u16 = 100;
/// The value of a ticked box.
const TICKED: &str = "1";

#[derive(Template)]
#[template(path = "deliveries.html")]
struct Page {
    frame: Frame,
    receivers: Vec<Receiver>,
    deliveries: Vec<Listed>,
    /// The id of the one subscription whose deliveries are shown; empty for all.
    chosen: String,
    failed: bool,
    latest: String,
}

/// GET: the seller's subscriptions, and the deliveries that the query asks for.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let query = |name| member.visit.query.get(name).unwrap_or_default();
    let filter = filter(query("subscription"), query("failed"))?;
    let (seller, t) = (member.seller().id, member.visit.language.texts());
    let panel = &member.visit.panel;
    let subscriptions = panel.subscriptions.subscriptions_of_seller(seller).await?;
    let own = |id| subscriptions.iter().any(|own| own.subscription.id == id);
    if !filter.subscription.is_none_or(own) {
        return Err(Refusal::NotFound);
    }
    let deliveries = panel
        .subscriptions
        .deliveries_of_seller(seller, filter, MOST)
        .await?;
    let number = || panel.randomness.uuid();
    let receivers: Vec<_> = subscriptions
        .into_iter()
        .map(|found| Receiver::new(found, number(), t))
        .collect();
    let template = Page {
        frame: Frame::of_member(&member, t.deliveries.title).noting(&member.visit),
        deliveries: deliveries
            .into_iter()
            .map(|found| Listed::new(found, &receivers, number(), t))
            .collect(),
        receivers,
        chosen: filter.subscription.map_or_else(String::new, |id| id.to_string()),
        failed: filter.failed,
        latest: (t.deliveries.latest)(MOST),
    };
    crate::reply::page(StatusCode::OK, &template)
}

/// POST: queues the event of an earlier delivery anew.
pub(crate) async fn again(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let delivery: DeliveryId = member.visit.parameter.parse().map_err(|_| Refusal::NotFound)?;
    let subscription: SubscriptionId = fields
        .get("subscription")
        .parse()
        .map_err(|_| Refusal::NotFound)?;
    let input = (sent(&member, &fields)?, (subscription, delivery));
    let queued = change(&member.visit.panel, input, |transaction, panel, input| {
        let ((sent, which), now) = (*input, transaction.now());
        let randomness = panel.randomness.as_ref();
        Box::pin(own_deliveries::deliver_again(
            transaction,
            transaction,
            randomness,
            sent,
            which,
            now,
        ))
    });
    told(
        queued.await?,
        (Done::Redelivered, Done::TooManyRedeliveries),
        &fields,
    )
}

/// POST: queues a sample.
pub(crate) async fn test(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let subscription: SubscriptionId = member.visit.parameter.parse().map_err(|_| Refusal::NotFound)?;
    let input = (sent(&member, &fields)?, subscription);
    let queued = change(&member.visit.panel, input, |transaction, panel, input| {
        let ((sent, subscription), now) = (*input, transaction.now());
        let randomness = panel.randomness.as_ref();
        Box::pin(own_deliveries::send_test_event(
            transaction,
            transaction,
            randomness,
            sent,
            subscription,
            now,
        ))
    });
    told(
        queued.await?,
        (Done::TestEventSent, Done::TooManyTestEvents),
        &fields,
    )
}

fn sent(member: &Member, fields: &Fields) -> Result<(ActingSeller, SentForm), Refusal> {
    Ok((member.acting(), member.sent(fields)?))
}

/// Back to the page as it was filtered. A form that was sent before is told of like the first time.
fn told(
    queued: Result<DeliveryId, Refused>,
    (done, too_many): (Done, Done),
    fields: &Fields,
) -> Result<HttpResponse, Refusal> {
    let done = match queued {
        Ok(_) | Err(Refused::Form(NumberUsed::BySame)) => done,
        Err(Refused::Form(NumberUsed::ByOther)) => return Err(Refusal::FormUsed(PAGE.to_owned())),
        Err(Refused::Inactive) => Done::NothingSent,
        Err(Refused::TooMany) => too_many,
        Err(Refused::NotFound) => return Err(Refusal::NotFound),
    };
    back(done, fields)
}

fn back(done: Done, fields: &Fields) -> Result<HttpResponse, Refusal> {
    let filter = filter(fields.get("shown_subscription"), fields.get("shown_failed"))?;
    see_other(&done.on(&address(filter)))
}

fn filter(subscription: &str, failed: &str) -> Result<DeliveryFilter, Refusal> {
    let subscription = match subscription {
        "" => None,
        id => Some(id.parse().map_err(|_| Refusal::NotFound)?),
    };
    let failed = failed == TICKED;
    Ok(DeliveryFilter { subscription, failed })
}

fn address(filter: DeliveryFilter) -> String {
    let mut query = Serializer::new(String::new());
    if let Some(id) = filter.subscription {
        query.append_pair("subscription", &id.to_string());
    }
    if filter.failed {
        query.append_pair("failed", TICKED);
    }
    match query.finish() {
        none if none.is_empty() => PAGE.to_owned(),
        query => format!("{PAGE}?{query}"),
    }
}
