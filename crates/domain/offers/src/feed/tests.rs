//! The rules of the feed: single cases, and properties over sequences of transitions.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::Decision;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
}

fn feed(status: OfferStatus, price: Option<i64>) -> OfferFeed {
    OfferFeed {
        id: Uuid::from_u128(7).into(),
        title: "Kettle".to_owned(),
        handle: "kettle".to_owned(),
        status,
        price: price.map(|amount| Money::pln(amount).unwrap()),
        stock: Some(Stock::new(3).unwrap()),
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        url: "https://shop.example/kettle".to_owned(),
    }
}

fn seller() -> SellerId {
    Uuid::from_u128(1).into()
}

fn after(fed: Fed) -> Offer {
    match fed {
        Fed::Created(change) | Fed::Updated(change) => change.after,
        Fed::Unchanged(offer) => offer,
    }
}

fn offer(price: Option<i64>, source: PriceSource) -> Offer {
    let mut offer = after(feed(OfferStatus::Published, price).over(None, seller(), at(0)));
    if let Some(price) = &mut offer.price {
        price.source = source;
    }
    offer
}

#[test]
fn a_change_whose_clock_is_behind_moves_updated_at_on_all_the_same() {
    let before = offer(Some(500), PriceSource::Automatic);
    for now in [at(-5), at(0)] {
        let mut new = feed(OfferStatus::Published, Some(500));
        new.title = "Steel kettle".to_owned();
        let changed = after(new.over(Some(before.clone()), seller(), now));
        assert_eq!(changed.updated_at, at(0) + chrono::TimeDelta::microseconds(1));
    }
}

#[test]
fn a_manual_price_stays() {
    let before = offer(Some(500), PriceSource::Manual);
    let mut new = feed(OfferStatus::Published, Some(900));
    new.title = "Steel kettle".to_owned();
    let Fed::Updated(change) = new.over(Some(before.clone()), seller(), at(9)) else {
        panic!("the title changed")
    };
    assert_eq!(change.after.price, before.price);
    assert_eq!(change.after.updated_at, at(9));
    assert_eq!(change.after.created_at, at(0));
}

#[test]
fn a_feed_without_price_removes_it_with_its_mark() {
    let before = offer(Some(500), PriceSource::Manual);
    let without = after(feed(OfferStatus::Published, None).over(Some(before), seller(), at(1)));
    assert_eq!(without.price, None);
    let again = after(feed(OfferStatus::Published, Some(900)).over(Some(without), seller(), at(2)));
    assert_eq!(again.price.unwrap().source, PriceSource::Automatic);
}

#[test]
fn the_same_again_changes_nothing() {
    let before = offer(Some(500), PriceSource::Automatic);
    let fed = feed(OfferStatus::Published, Some(500)).over(Some(before.clone()), seller(), at(5));
    assert_eq!(fed, Fed::Unchanged(before));
}

#[test]
fn being_rejected_is_announced_once_whatever_the_way() {
    let Fed::Created(made) = feed(OfferStatus::Rejected, None).over(None, seller(), at(0)) else {
        panic!()
    };
    assert_eq!(made.events.len(), 1);
    let moved = offer(None, PriceSource::Automatic).moderate(Decision::Reject, at(1));
    assert_eq!(
        moved.events,
        [OfferEvent::Rejected {
            offer: moved.after.id
        }]
    );
    let repeated = moved.after.moderate(Decision::Reject, at(2));
    assert!(repeated.events.is_empty());
    assert_eq!(repeated.after.updated_at, at(1));
}

#[derive(Debug, Clone)]
enum Move {
    Feed(OfferStatus, Option<i64>),
    Moderate(Decision),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let status = prop::sample::select(OfferStatus::ALL.to_vec());
    let feed = (status, prop::option::of(0_i64..3)).prop_map(|(status, price)| Move::Feed(status, price));
    let decision = prop::sample::select(vec![Decision::Propose, Decision::Approve, Decision::Reject]);
    prop::collection::vec(prop_oneof![feed, decision.prop_map(Move::Moderate)], 1..40)
}

proptest! {
    #[test]
    fn over_any_history_events_match_moves_and_updated_at_follows_what_is_shown(
        moves in moves(),
        manual in any::<bool>(),
    ) {
        let source = if manual { PriceSource::Manual } else { PriceSource::Automatic };
        let mut offer = offer(Some(1), source);
        for (second, step) in (1..).zip(moves) {
            let before = offer.clone();
            let (next, events) = match step {
                Move::Feed(status, price) => match feed(status, price).over(Some(offer), seller(), at(second)) {
                    Fed::Updated(change) => (change.after, change.events),
                    Fed::Unchanged(same) => (same, Vec::new()),
                    Fed::Created(_) => panic!("the offer is there"),
                },
                Move::Moderate(decision) => {
                    let change = offer.moderate(decision, at(second));
                    (change.after, change.events)
                }
            };
            let into_rejected = next.status == OfferStatus::Rejected && before.status != OfferStatus::Rejected;
            prop_assert_eq!(events.len(), usize::from(into_rejected));
            let shown = |o: &Offer| (o.status, o.price.map(|p| p.money), o.stock);
            prop_assert_eq!(next.updated_at == at(second), shown(&next) != shown(&before));
            prop_assert_eq!(next.created_at, before.created_at);
            let was_manual = before.price.is_some_and(|p| p.source == PriceSource::Manual);
            if was_manual && next.price.is_some() {
                prop_assert_eq!(next.price, before.price);
            }
            offer = next;
        }
    }
}
