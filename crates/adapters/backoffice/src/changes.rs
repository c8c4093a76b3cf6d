//! The change feed: what sellers and carriers changed, for a marketplace that keeps its shop in sync.

use std::time::Duration;

use changes::{
    ChangeCursor, ChangeItem, ChangePage, ChangesError, DEFAULT_CHANGES, Detail, MAX_CHANGES, Topic,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use tokio::select;
use tokio::time::{Instant, sleep_until};
use web::deadline::Deadline;
use web::openapi::Parameter;
use web::operation::{Call, Incoming, Read};
use web::reply::Reply;
use web::resources::MoneyView;
use web::timestamps::Timestamp;
use web::view::View;
use web::{Entry, Error, Problem, Violations};

use crate::policy::{check_again, conflict};
use crate::sellers::NOT_A_CURSOR;
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

impl Read<BackOffice> for ListChanges {
    const SCOPE: Access = Access::Read;
    const OWN_DEADLINE: bool = true;
    const QUERY: &'static [Parameter] = &[
        Parameter::undocumented("after"),
        Parameter::undocumented("limit"),
        Parameter::undocumented("wait"),
    ];

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.query(|query| {
            Some(Self {
                after: query.text("after").map(|text| ChangeCursor(text.into_owned())),
                limit: query.clamped("limit", 1..=MAX_CHANGES, DEFAULT_CHANGES),
                wait: Duration::from_secs(query.clamped("wait", 0..=MAX_WAIT, 0).into()),
            })
        })
    }

    /// The first page with a change, or an empty one when the time is over or the process is asked to stop.
    /// Dropped when the reader disconnects.
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let (mut after, until) = (self.after, Instant::now() + self.wait);
        let (mut deadline, mut has_waited) = (call.deadline, false);
        let page = loop {
            let look = call.state.changes.changes(after.take(), self.limit);
            let page = deadline.run(look).await?.map_err(error)?;
            let now = Instant::now();
            if !page.items.is_empty() || now >= until {
                break page;
            }
            has_waited = true;
            select! {
                () = sleep_until(until.min(now + POLL_INTERVAL)) => after = Some(page.next),
                () = call.state.ports.tasks.stopping() => break page,
            }
            deadline = Deadline::new(Instant::now(), POLL_TIMEOUT);
        };
        if has_waited {
            check_again(&call).await?;
        }
        Reply::ok(&PageView::whole(&page))
    }
}

fn error(error: ChangesError) -> Error {
    let entry = match error {
        ChangesError::Malformed => Entry::validation("after", NOT_A_CURSOR),
        ChangesError::OtherHistory => conflict(&error).at("after"),
        ChangesError::Store(error) => return error.into(),
    };
    Problem::from(entry).into()
}

web::view! {
    /// `next` is always present.
    PageView<'a> of page: &'a ChangePage {
        "items" => page.items.iter().map(ItemView).collect::<Vec<_>>(),
        "next" => page.next.0,
    }
}

/// One change: what it is about, and the new value by its field name.
struct ItemView<'a>(&'a ChangeItem);

impl Serialize for ItemView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(item) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", item.kind.as_str())?;
        map.serialize_entry("seller_id", &item.seller.uuid())?;
        match item.topic {
            Topic::Offer(offer) => map.serialize_entry("offer_id", &offer.uuid())?,
            Topic::Order(order) => map.serialize_entry("order_id", &order.uuid())?,
            Topic::Application(client) => map.serialize_entry("client_id", &client.to_string())?,
        }
        map.serialize_entry("at", &Timestamp::new(item.at))?;
        match item.detail {
            Detail::Price(price) => map.serialize_entry("price", &MoneyView::whole(price))?,
            Detail::Stock(stock) => map.serialize_entry("stock", &stock.get())?,
            Detail::Status(status) => map.serialize_entry("status", status.as_str())?,
            Detail::Nothing => {}
        }
        map.end()
    }
}
