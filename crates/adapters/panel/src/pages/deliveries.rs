//! `/panel/deliveries`: webhook deliveries to applications, their results, and deliveries sent by hand.

use askama::Template;
use futures_util::TryFutureExt as _;
use oauth::BUILT_IN_NAME;
use usecases::redeliver::{self, RedeliveryRefusal, Requester};
use usecases::subscriptions::delete_for_seller;
use uuid::Uuid;
use webhooks::{DeliveryFilter, DeliveryId, Outcome, SellerDelivery, SellerSubscription, SubscriptionId};

use super::{ROWS, confirm, done, next_page, ok, with_query};
use crate::frame::Frame;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;
use crate::texts::Texts;

const PATH: &str = "/panel/deliveries";
/// The value of a ticked checkbox.
const CHECKED: &str = "1";

/// Each subscription and each delivery has the one-time number of its form.
#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    frame: Frame,
    receivers: Vec<(Uuid, SellerSubscription)>,
    deliveries: Vec<(Uuid, SellerDelivery)>,
    /// The address of the next page of subscriptions, and of deliveries; empty for none.
    next: [String; 2],
    /// The id of the subscription whose deliveries are shown; empty for all.
    chosen: String,
    failed: bool,
}

/// GET: the seller's subscriptions, and the deliveries selected by the query.
pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let query = |name| request.query.get(name).unwrap_or_default();
    let filter = filter(query("subscription"), query("failed"))?;
    let (seller, subscriptions) = (request.seller().id, &request.panel.subscriptions);
    let after = request.position("after")?;
    let receivers = subscriptions.subscriptions_of_seller(seller, after, ROWS + 1);
    let mut receivers = receivers.await?;
    let before = request.position("before")?;
    let deliveries = subscriptions.deliveries_of_seller(seller, filter, before, ROWS + 1);
    let mut deliveries = deliveries.await?;
    let chosen = filter.subscription.map_or_else(String::new, |id| id.to_string());
    let receiver = |last: &SellerSubscription| last.subscription.id.to_string();
    let delivery = |last: &SellerDelivery| last.delivery.id.to_string();
    let next = [
        next_page(&address(filter), "after", &mut receivers, receiver),
        next_page(&address(filter), "before", &mut deliveries, delivery),
    ];
    // The chosen one is listed whichever page this is.
    let is_listed = |id| receivers.iter().any(|own| own.subscription.id == id);
    if let Some(id) = filter.subscription.filter(|id| !is_listed(*id)) {
        let found = subscriptions.subscription_of_seller(seller, id).await?;
        receivers.insert(0, found.ok_or(PageError::NotFound)?);
    }
    let number = || request.panel.ports.randomness.uuid();
    ok(&DeliveriesPage {
        frame: request.frame(request.texts().frame.deliveries),
        receivers: receivers.into_iter().map(|found| (number(), found)).collect(),
        deliveries: deliveries.into_iter().map(|found| (number(), found)).collect(),
        next,
        chosen,
        failed: filter.failed,
    })
}

impl DeliveriesPage {
    fn app<'a>(&self, name: &'a str) -> &'a str {
        app(self.frame.t, name)
    }

    /// The result of an attempt, and its technical reason in English; empty for none.
    fn outcome<'a>(&self, outcome: &'a Outcome) -> (String, &'a str) {
        let t = self.frame.t;
        match outcome {
            Outcome::Answered(status) => ((t.deliveries.answered)(*status), ""),
            Outcome::Failed(failed) => (t.failure(failed).to_owned(), failed.reason().unwrap_or_default()),
        }
    }
}

/// POST: queues an earlier delivery again.
pub(crate) async fn redeliver(request: SignedInRequest) -> PageResult {
    let delivery: DeliveryId = request.id()?;
    let subscription = request.fields.get("subscription");
    let which = (subscription.parse().map_err(|_| PageError::NotFound)?, delivery);
    let (form, back) = (request.form()?, shown(&request)?);
    let input = (Requester::Seller(request.acting()), which);
    let queued = request.change_once(form, PATH, input, |tx, _, (requester, which)| {
        let queued = redeliver::redeliver(tx, tx, *requester, *which, tx.now());
        Box::pin(queued.map_ok(|_| None))
    });
    answered(&queued.await?, back, "redelivered", "too-many-redeliveries")
}

/// POST: queues a test event.
pub(crate) async fn send_test_event(request: SignedInRequest) -> PageResult {
    let subscription: SubscriptionId = request.id()?;
    let (form, back) = (request.form()?, shown(&request)?);
    let input = (Requester::Seller(request.acting()), subscription);
    let queued = request.change_once(form, PATH, input, |tx, panel, (requester, which)| {
        let randomness = panel.ports.randomness.as_ref();
        let queued = redeliver::send_test_event(tx, tx, randomness, *requester, *which, None, tx.now());
        Box::pin(queued.map_ok(|_| None))
    });
    answered(&queued.await?, back, "test-event-sent", "too-many-test-events")
}

/// GET: asks for confirmation before deleting a subscription.
pub(crate) async fn deletion(request: SignedInRequest) -> PageResult {
    let subscriptions = &request.panel.subscriptions;
    let found = subscriptions.subscription_of_seller(request.seller().id, request.id()?);
    let found = found.await?.ok_or(PageError::NotFound)?;
    let t = request.texts();
    let title = (t.deliveries.confirm_title)(app(t, &found.app_name), &found.receiver);
    let (text, submit) = (t.deliveries.confirm_text, t.application.delete);
    confirm(&request, title, text, submit, PATH)
}

pub(crate) async fn delete(request: SignedInRequest) -> PageResult {
    let form = request.form()?;
    let input = (request.acting(), request.id::<SubscriptionId>()?);
    let deleted = request.change_once(form, PATH, input, |tx, _, (by, id)| {
        Box::pin(delete_for_seller(tx, tx, *by, *id).map_ok(|()| None))
    });
    deleted.await?.map_err(|_| PageError::NotFound)?;
    done("subscription-deleted", PATH)
}

/// The name of an application, that of the seller's own tokens in the page's language.
fn app<'a>(t: &Texts, name: &'a str) -> &'a str {
    if name == BUILT_IN_NAME {
        return t.frame.tokens;
    }
    name
}

/// The filter of the page that a form was on.
fn shown(request: &SignedInRequest) -> PageResult<DeliveryFilter> {
    let fields = &request.fields;
    filter(fields.get("shown_subscription"), fields.get("shown_failed"))
}

/// Redirects to the page with this filter. A repeated form gets the notice of the first time.
fn answered(
    queued: &Result<(), RedeliveryRefusal>,
    back: DeliveryFilter,
    sent: &str,
    too_many: &str,
) -> PageResult {
    let word = match queued {
        Ok(()) => sent,
        Err(RedeliveryRefusal::Inactive) => "nothing-sent",
        Err(RedeliveryRefusal::UnderWay) => "under-way",
        Err(RedeliveryRefusal::TooMany(_)) => too_many,
        Err(RedeliveryRefusal::NotFound | RedeliveryRefusal::NotSubscribed) => {
            return Err(PageError::NotFound);
        }
    };
    done(word, &address(back))
}

fn filter(subscription: &str, failed: &str) -> PageResult<DeliveryFilter> {
    let subscription = match subscription {
        "" => None,
        id => Some(id.parse().map_err(|_| PageError::NotFound)?),
    };
    let failed = failed == CHECKED;
    Ok(DeliveryFilter {
        subscription,
        failed,
        ..DeliveryFilter::default()
    })
}

fn address(filter: DeliveryFilter) -> String {
    let mut address = PATH.to_owned();
    if let Some(id) = filter.subscription {
        address = with_query(&address, "subscription", &id.to_string());
    }
    if filter.failed {
        address = with_query(&address, "failed", CHECKED);
    }
    address
}
