//! The change feed: what sellers and carriers did, for a marketplace that keeps its shop in step.

use std::time::Duration;

use changes::{
    CHANGES_DEFAULT, CHANGES_MAX, ChangeCursor, ChangeItem, ChangePage, ChangesError, Detail, Topic,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use tokio::select;
use tokio::time::{Instant, sleep_until};
use web::{Code, Entry, sentence, timestamps};

use crate::money::MoneyView;
use crate::operation::{Context, Operation};
use crate::pipeline::in_time;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;

/// The longest time that a reader may wait for something to happen, in seconds.
const LONGEST_WAIT: u16 = 30;
/// How often the feed is looked at while somebody waits. Nothing is held between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// `GET /changes`
pub(crate) struct ListChanges;

/// What is read, and how long for.
pub(crate) struct Reading {
    after: Option<ChangeCursor>,
    limit: u16,
    wait: Duration,
}

impl Operation for ListChanges {
    type Input = Reading;

    fn decode(parts: &Parts<'_>) -> Result<Reading, Refusal> {
        let reading = parts.parameters(&["after", "limit", "wait"], |query| Reading {
            after: query.text("after").map(|text| ChangeCursor(text.into_owned())),
            limit: query.clamped("limit", 1..=CHANGES_MAX, CHANGES_DEFAULT),
            wait: Duration::from_secs(query.clamped("wait", 0..=LONGEST_WAIT, 0).into()),
        })?;
        Ok(reading)
    }

    async fn execute(reading: Reading, context: Context) -> Result<Reply, Refusal> {
        let page = read(reading, &context).await?;
        Ok(Reply::ok(&PageView::from(&page))?)
    }
}

/// The first page with anything on it, or an empty one when the time is over or the process is asked to stop. A reader that
/// goes away takes this future along.
async fn read(reading: Reading, context: &Context) -> Result<ChangePage, Refusal> {
    let Reading {
        mut after,
        limit,
        wait,
    } = reading;
    let (office, until) = (&context.office, Instant::now() + wait);
    loop {
        let look = async { Ok(office.changes.changes(after.take(), limit).await?) };
        let page = in_time(look).await?;
        let now = Instant::now();
        if !page.items.is_empty() || now >= until {
            return Ok(page);
        }
        select! {
            () = sleep_until(until.min(now + LOOK_EVERY)) => after = Some(page.next),
            () = office.tasks.stopping() => return Ok(page),
        }
    }
}

impl From<ChangesError> for Refusal {
    fn from(error: ChangesError) -> Self {
        let told = sentence::of(&error);
        let entry = match error {
            ChangesError::Malformed => Entry::validation("after", "Must be the `next` of a page."),
            ChangesError::OtherHistory => Entry::new(Code::Conflict, told).at("after"),
            ChangesError::Store(error) => return error.into(),
        };
        web::Problem::from(entry).into()
    }
}

/// `{items, next}`; there always is a `next`.
#[derive(Serialize)]
struct PageView<'a> {
    items: Vec<ItemView>,
    next: &'a str,
}

/// One change. Which of the optional fields there are follows from `kind`.
#[derive(Serialize)]
struct ItemView {
    kind: &'static str,
    seller_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    offer_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(serialize_with = "timestamps::serialize")]
    at: DateTime<Utc>,
    #[serde(flatten)]
    detail: DetailView,
}

/// The new value, under its name.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum DetailView {
    Price(MoneyView),
    Stock(i32),
    Status(&'static str),
    #[serde(untagged)]
    Nothing {},
}

impl<'a> From<&'a ChangePage> for PageView<'a> {
    fn from(page: &'a ChangePage) -> Self {
        Self {
            items: page.items.iter().map(ItemView::from).collect(),
            next: &page.next.0,
        }
    }
}

impl From<&ChangeItem> for ItemView {
    fn from(item: &ChangeItem) -> Self {
        let (mut offer_id, mut order_id, mut client_id) = (None, None, None);
        match item.topic {
            Topic::Offer(offer) => offer_id = Some(offer.to_string()),
            Topic::Order(order) => order_id = Some(order.to_string()),
            Topic::Application(client) => client_id = Some(client.to_string()),
        }
        Self {
            kind: item.kind.as_str(),
            seller_id: item.seller.to_string(),
            offer_id,
            order_id,
            client_id,
            at: item.at,
            detail: match item.detail {
                Detail::Price(price) => DetailView::Price(price.into()),
                Detail::Stock(stock) => DetailView::Stock(stock.get()),
                Detail::Status(status) => DetailView::Status(status.as_str()),
                Detail::Nothing => DetailView::Nothing {},
            },
        }
    }
}
