//! One key, one effect, one answer; and no piece of a stock is sold twice.

use std::collections::BTreeSet;

use changes::Detail;
use kernel::{OfferId, SellerId};
use orders::{OrderState, OrderStatus, SellerOrder};
use usecases::settle_order::Settlement;

use super::super::{
    deed::Deed,
    history::{Reply, Seen, Story},
    trade::{Market, PIECES},
};
use crate::Database;

pub(super) fn wrongs(seen: &Seen, database: &Database, market: &Market) -> Vec<String> {
    let mut wrongs = Vec::new();
    let parts = database.parts();
    for (name, story) in &seen.stories {
        wrongs.extend(answers(name, story));
        wrongs.extend(effect(name, story, &parts, database));
    }
    wrongs.extend(
        market
            .offers
            .iter()
            .filter_map(|offer| stock(*offer, &parts, database)),
    );
    wrongs
}

/// Every good answer to a request is the same one.
fn answers(name: &str, story: &Story) -> Option<String> {
    let mut good = story.given.iter().filter(|reply| reply.is_success());
    let first = good.next()?;
    let other = good.find(|reply| *reply != first)?;
    Some(format!("{name} was answered {first:?} and {other:?}"))
}

/// The effect is there once where a good answer was given, at most once where none was, and not at all where the client was
/// told that it is refused.
fn effect(name: &str, story: &Story, parts: &[SellerOrder], database: &Database) -> Option<String> {
    let number = effects(name, story.deed.as_ref()?, parts, database);
    let good = story.given.iter().any(Reply::is_success);
    let refused = story.told.as_ref().is_some_and(Reply::is_refusal);
    let fine = match (good, refused) {
        (true, _) => number == 1,
        (false, true) => number == 0,
        (false, false) => number <= 1,
    };
    (!fine).then(|| format!("{name} has {number} effects and the answers {:?}", story.given))
}

fn effects(name: &str, deed: &Deed, parts: &[SellerOrder], database: &Database) -> usize {
    let of = |suits: &dyn Fn(&SellerOrder) -> bool| {
        let suiting = parts.iter().filter(|part| suits(part));
        suiting.map(|part| part.id).collect::<BTreeSet<_>>().len()
    };
    match deed {
        Deed::Place(_) => of(&|part| part.delivery_method.as_deref() == Some(name)),
        Deed::Settle(order, step) => of(&|part| {
            let settled = match step {
                Settlement::Pay => part.paid_at().is_some(),
                Settlement::Cancel => part.status() == OrderStatus::Cancelled,
                Settlement::Deliver => part.status() == OrderStatus::Delivered,
            };
            part.id == *order && settled
        }),
        Deed::Ship(_, report) => of(&|part| {
            let parcel = part.parcel();
            parcel.is_some_and(|parcel| parcel.tracking_number == report.tracking_number)
        }),
        Deed::Patch(_, _, patch) => {
            let set = |detail| matches!(detail, Detail::Stock(stock) if Some(stock) == patch.stock);
            database.feed().iter().filter(|item| set(item.detail)).count()
        }
        // They end each other's effects; what is there in the end is judged elsewhere.
        Deed::Subscribe(..) | Deed::Unsubscribe(..) => usize::from(true),
    }
}

/// What is left of a stock is what was there without what living orders have taken.
fn stock((seller, offer): (SellerId, OfferId), parts: &[SellerOrder], database: &Database) -> Option<String> {
    let living = parts
        .iter()
        .filter(|part| part.seller == seller && !matches!(part.state, OrderState::Cancelled { .. }));
    let items = living.flat_map(|part| &part.items);
    let taken: i32 = items
        .filter(|item| item.offer == offer)
        .map(|item| item.taken)
        .sum();
    let left = database.stock(seller, offer);
    (left != Some(PIECES - taken)).then(|| format!("of {PIECES} pieces {taken} are taken and {left:?} left"))
}
