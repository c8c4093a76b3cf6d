//! The rules of the feed: single cases, and properties over sequences of transitions.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::Decision;
use crate::patch::tests::at;

fn feed(status: OfferStatus, price: Option<i64>) -> OfferInput {
    OfferInput {
        id: Uuid::from_u128(7).into(),
        product: product("Kettle"),
        status,
        price: price.map(|amount| Money::pln(amount).unwrap()),
        stock: Some(Stock::new(3).unwrap()),
    }
}

fn product(title: &str) -> Product {
    Product {
        title: title.to_owned(),
        ..Product::default()
    }
}

/// A published offer with another title than the one that is stored.
fn retitled(price: Option<i64>) -> OfferInput {
    OfferInput {
        product: product("Steel kettle"),
        ..feed(OfferStatus::Published, price)
    }
}

fn seller() -> SellerId {
    Uuid::from_u128(1).into()
}

fn offer(price: Option<i64>, source: PriceSource) -> Offer {
    let mut offer = feed(OfferStatus::Published, price)
        .over(None, seller(), at(0))
        .1
        .after;
    if let Some(price) = &mut offer.price {
        price.source = source;
    }
    offer
}

#[test]
fn updated_at_advances_though_the_clock_is_behind() {
    for now in [at(-5), at(0)] {
        let before = offer(Some(500), PriceSource::Automatic);
        let (_, change) = retitled(Some(500)).over(Some(before), seller(), now);
        let changed = change.after;
        assert_eq!(changed.updated_at, at(0) + chrono::TimeDelta::microseconds(1));
    }
}

#[test]
fn a_manual_price_stays_until_a_feed_without_price_removes_it() {
    let before = offer(Some(500), PriceSource::Manual);
    let (effect, change) = retitled(Some(900)).over(Some(before.clone()), seller(), at(9));
    assert_eq!(effect, FeedEffect::Updated);
    assert_eq!(change.after.price, before.price);
    assert_eq!((change.after.updated_at, change.after.created_at), (at(9), at(0)));
    let (_, without) = feed(OfferStatus::Published, None).over(Some(before), seller(), at(1));
    assert_eq!(without.after.price, None);
    let (_, again) = feed(OfferStatus::Published, Some(900)).over(Some(without.after), seller(), at(2));
    assert_eq!(again.after.price.unwrap().source, PriceSource::Automatic);
}

#[test]
fn a_rejection_is_announced_once() {
    let (effect, created) = feed(OfferStatus::Rejected, None).over(None, seller(), at(0));
    assert_eq!((effect, created.events.len()), (FeedEffect::Created, 1));
    let moderated = offer(None, PriceSource::Automatic).moderate(Decision::Reject, at(1));
    assert_eq!(moderated.events, [OfferEvent::Rejected]);
    let repeated = moderated.after.moderate(Decision::Reject, at(2));
    assert!(repeated.events.is_empty());
    assert_eq!(repeated.after.updated_at, at(1));
}

#[derive(Debug, Clone)]
enum Step {
    Feed(OfferStatus, Option<i64>),
    Moderate(Decision),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let status = prop::sample::select(OfferStatus::ALL.to_vec());
    let feed = (status, prop::option::of(0_i64..3)).prop_map(|(status, price)| Step::Feed(status, price));
    let decision = prop::sample::select(vec![Decision::Propose, Decision::Approve, Decision::Reject]);
    prop::collection::vec(prop_oneof![feed, decision.prop_map(Step::Moderate)], 1..40)
}

proptest! {
    #[test]
    fn in_any_history_events_match_rejections_and_updated_at_follows_visible_fields(
        steps in steps(),
        manual in any::<bool>(),
    ) {
        let source = if manual { PriceSource::Manual } else { PriceSource::Automatic };
        let mut offer = offer(Some(1), source);
        for (second, step) in (1..).zip(steps) {
            let before = offer.clone();
            let (next, events) = match step {
                Step::Feed(status, price) => {
                    let (_, change) = feed(status, price).over(Some(offer), seller(), at(second));
                    (change.after, change.events)
                }
                Step::Moderate(decision) => {
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
