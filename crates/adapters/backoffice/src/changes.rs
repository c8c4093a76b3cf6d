//! The change feed: what sellers and carriers changed, for a marketplace that keeps its shop in sync.

use std::time::Duration;

use changes::{
    ChangeCursor, ChangeItem, ChangePage, ChangesError, DEFAULT_CHANGES, Detail, MAX_CHANGES, Topic,
};
use serde::Serialize;
use tokio::select;
use tokio::time::{Instant, sleep_until};
use web::deadline::Deadline;
use web::openapi::Parameter;
use web::operation::{Call, Incoming, Operation, Read};
use web::reply::Reply;
use web::resources::MoneyView;
use web::timestamps::Timestamp;
use web::view::View;
use web::{Code, Entry, Error, Problem, Violations, to_sentence};

use crate::{Access, BackOffice};

/// The longest time that a reader may wait for a change, in seconds.
const MAX_WAIT: u16 = 30;
/// How often the feed is polled while a reader waits. Nothing is buffered between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The time limit of each poll after the first, which has the request's.
const POLL_TIMEOUT: Duration = Duration::from_millis(1_400);

/// Reads a page of the feed; waits for changes if there are none yet.
pub(crate) struct ListChanges {
    after: Option<ChangeCursor>,
    limit: u16,
    wait: Duration,
}

impl Operation<BackOffice> for ListChanges {
    const SCOPE: Access = Access::Read;
    const QUERY: &'static [Parameter] = &[
        Parameter::undocumented("after"),
        Parameter::undocumented("limit"),
        Parameter::undocumented("wait"),
    ];

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.query(Self::QUERY, |query| {
            Some(Self {
                after: query.text("after").map(|text| ChangeCursor(text.into_owned())),
                limit: query.clamped("limit", 1..=MAX_CHANGES, DEFAULT_CHANGES),
                wait: Duration::from_secs(query.clamped("wait", 0..=MAX_WAIT, 0).into()),
            })
        })
    }
}

impl Read<BackOffice> for ListChanges {
    const WAITS: bool = true;

    /// The first page with a change, or an empty one when the time is over or the process is asked to stop.
    /// Dropped when the reader disconnects.
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let Self {
            mut after,
            limit,
            wait,
        } = self;
        let until = Instant::now() + wait;
        let mut deadline = call.deadline;
        loop {
            let look = call.state.changes.changes(after.take(), limit);
            let page = deadline.run(look).await?;
            let page = page.map_err(error)?;
            let now = Instant::now();
            if !page.items.is_empty() || now >= until {
                return Reply::ok(&PageView::from(&page));
            }
            select! {
                () = sleep_until(until.min(now + POLL_INTERVAL)) => after = Some(page.next),
                () = call.state.ports.tasks.stopping() => return Reply::ok(&PageView::from(&page)),
            }
            deadline = Deadline::new(Instant::now(), POLL_TIMEOUT);
        }
    }
}

fn error(error: ChangesError) -> Error {
    let message = to_sentence(&error);
    let entry = match error {
        ChangesError::Malformed => Entry::validation("after", "Must be the `next` of a page."),
        ChangesError::OtherHistory => Entry::new(Code::Conflict, message).at("after"),
        ChangesError::Store(error) => return error.into(),
    };
    Problem::from(entry).into()
}

/// `{items, next}`; `next` is always present.
#[derive(Serialize)]
struct PageView<'a> {
    items: Vec<ItemView>,
    next: &'a str,
}

/// One change. `kind` determines which optional fields are present.
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
    at: Timestamp,
    #[serde(flatten)]
    detail: DetailView,
}

/// The new value, by its field name.
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
            at: Timestamp::new(item.at),
            detail: match item.detail {
                Detail::Price(price) => DetailView::Price(MoneyView::whole(price)),
                Detail::Stock(stock) => DetailView::Stock(stock.get()),
                Detail::Status(status) => DetailView::Status(status.as_str()),
                Detail::Nothing => DetailView::Nothing {},
            },
        }
    }
}
