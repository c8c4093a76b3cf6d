//! A delivery for each event and each subscription to it, told rightly and to the right one, and brought to an end.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use orders::{OrderState, SellerOrder};
use webhooks::{DeliveryId, LOSSES_FORGIVEN, LaneKey, MOST_ATTEMPTS, WebhookEvent, signature};

use super::super::{
    history::{Received, Seen},
    trade::Market,
};
use crate::{
    Database,
    memory::{DeliveryRow, SubscriptionRow},
};

/// What a worker was given before a subscription's end may be begun so long after it: as long as the answer to a claim is on
/// its way at most.
const GRACE: TimeDelta = TimeDelta::seconds(3);

/// The next attempt begins so long after the last one's end at the earliest, where that was recorded …
const RETRY: TimeDelta = TimeDelta::seconds(1);

/// … and so long after its beginning where it was lost: when the lease has run out.
const LOST: TimeDelta = TimeDelta::seconds(20);

type Deliveries = Vec<((LaneKey, DeliveryId), DeliveryRow)>;

pub(super) fn wrongs(seen: &Seen, database: &Database, market: &Market) -> Vec<String> {
    let (parts, deliveries) = (database.parts(), database.deliveries());
    let lanes: BTreeMap<_, _> = database.subscriptions().into_iter().collect();
    let mut wrongs = Vec::new();
    for (lane, events) in &market.lanes {
        wrongs.extend(told_of(*lane, events, &parts, &deliveries));
    }
    for ((lane, id), row) in &deliveries {
        let received: Vec<_> = seen
            .received
            .iter()
            .filter(|got| got.message.delivery == *id)
            .collect();
        let found = lanes.get(lane);
        wrongs.extend(found.is_none().then(|| format!("{id} has no subscription")));
        wrongs.extend(end(*id, row, &received));
        wrongs.extend(hasty(*id, &received));
        let wrongly = found.and_then(|found| received.iter().find(|got| !is_right(got, row, found)));
        wrongs.extend(wrongly.map(|got| format!("{id} was sent as {:?}", got.message)));
        let theirs = parts
            .iter()
            .any(|part| part.seller == lane.seller && is_about(row, part));
        wrongs.extend((!theirs).then(|| format!("{id} tells a seller of what is another's")));
    }
    wrongs.extend(after_the_end(seen, market));
    wrongs
}

/// Exactly one delivery of each event that a subscription hears of.
fn told_of(
    lane: LaneKey,
    events: &[WebhookEvent],
    parts: &[SellerOrder],
    deliveries: &Deliveries,
) -> Vec<String> {
    let of_lane: Vec<_> = deliveries.iter().filter(|((of, _), _)| *of == lane).collect();
    let (mut wrongs, mut expected) = (Vec::new(), 0);
    for part in parts.iter().filter(|part| part.seller == lane.seller) {
        for event in happened(part).into_iter().filter(|event| events.contains(event)) {
            expected += 1;
            let told = of_lane
                .iter()
                .filter(|(_, row)| row.event == event && is_about(row, part))
                .count();
            if told != 1 {
                wrongs.push(format!(
                    "{} of {:?} is told {told} times",
                    event.as_str(),
                    part.number
                ));
            }
        }
    }
    if of_lane.len() != expected {
        wrongs.push(format!(
            "a subscription has {} deliveries of {expected} events",
            of_lane.len()
        ));
    }
    wrongs
}

/// Each transition that a part has made.
fn happened(part: &SellerOrder) -> Vec<WebhookEvent> {
    use WebhookEvent::{OrderCancelled, OrderCreated, OrderDelivered, OrderPaid, OrderShipped};
    let mut events = vec![OrderCreated];
    events.extend(part.paid_at().map(|_| OrderPaid));
    match part.state {
        OrderState::Pending | OrderState::Processing { .. } => {}
        OrderState::Shipped { .. } => events.push(OrderShipped),
        OrderState::Delivered { .. } => events.extend([OrderShipped, OrderDelivered]),
        OrderState::Cancelled { .. } => events.push(OrderCancelled),
    }
    events
}

fn is_about(row: &DeliveryRow, part: &SellerOrder) -> bool {
    String::from_utf8_lossy(&row.body).contains(&part.id.to_string())
}

/// It has arrived, and somebody took it; or six attempts were made in vain.
fn end(id: DeliveryId, row: &DeliveryRow, received: &[&Received]) -> Option<String> {
    let taken = received
        .iter()
        .any(|got| got.answered.is_some_and(|status| status < 300));
    // One that was never lost too often was sent as often as it was attempted.
    let sent = row.lost >= LOSSES_FORGIVEN || usize::from(row.attempt) <= received.len();
    let fine = sent
        && match (row.due_at, row.delivered_at) {
            (Some(_), _) => false,
            (None, Some(_)) => taken && (1..=MOST_ATTEMPTS).contains(&row.attempt),
            (None, None) => row.attempt == MOST_ATTEMPTS,
        };
    (!fine).then(|| {
        format!(
            "{id} of {} ends after {} attempts as {row:?}",
            row.event.as_str(),
            row.attempt
        )
    })
}

/// Attempts of one delivery follow each other, and never go side by side.
fn hasty(id: DeliveryId, received: &[&Received]) -> Option<String> {
    let pairs = received.iter().zip(received.iter().skip(1));
    let fine = |first: &Received, second: &Received| {
        let recorded = first
            .ended_at
            .is_some_and(|ended_at| second.at >= ended_at + RETRY);
        recorded || second.at >= first.at + LOST
    };
    let (first, second) = pairs
        .map(|(first, second)| (*first, *second))
        .find(|(first, second)| !fine(first, second))?;
    Some(format!(
        "{id} was sent at {}, ended {:?}, and again at {}",
        first.at, first.ended_at, second.at
    ))
}

/// The same bytes each time, signed by the subscription's secret and sent to its address.
fn is_right(received: &Received, row: &DeliveryRow, lane: &SubscriptionRow) -> bool {
    let message = &received.message;
    *message.body == *row.body
        && message.event == row.event
        && message.url == lane.new.url
        && message.signature == signature(&lane.new.secret, &row.body)
}

/// Nothing begins once the application was told that its subscription has ended.
fn after_the_end(seen: &Seen, market: &Market) -> Vec<String> {
    let standing: Vec<_> = market
        .manners
        .iter()
        .map(|(address, _)| address.as_str())
        .collect();
    let late = |got: &&Received| {
        let ended = seen.unsubscribed.iter().any(|(_, at)| got.at > *at + GRACE);
        ended && !standing.contains(&got.message.url.as_str())
    };
    let late = seen.received.iter().filter(late);
    late.map(|got| format!("{} was sent after the subscription's end", got.message.delivery))
        .collect()
}
