//! The feed tells everything, each thing once and in one order; and each buyer is told once.

use changes::{ChangeKind, Topic};
use orders::SellerOrder;

use super::super::{deed::Deed, history::Seen};
use crate::Database;

pub(super) fn wrongs(seen: &Seen, database: &Database) -> Vec<String> {
    let feed = database.feed();
    let mut wrongs = Vec::new();
    if seen.followed != feed {
        wrongs.push(format!(
            "the feed is {feed:?} and was followed as {:?}",
            seen.followed
        ));
    }
    for part in database.parts() {
        let by_seller = part.parcel().is_some_and(|_| is_shipped_by_seller(seen, &part));
        let told = feed.iter().filter(|item| {
            item.kind == ChangeKind::OrderShipped
                && item.topic == Topic::Order(part.id)
                && item.seller == part.seller
        });
        let told = told.count();
        if told != usize::from(by_seller) {
            wrongs.push(format!(
                "the feed tells {told} times of the shipment of {:?}",
                part.number
            ));
        }
        let mails = database
            .mails()
            .iter()
            .filter(|mail| mail.order == part.id)
            .count();
        let notified = part.parcel().is_some_and(|parcel| parcel.buyer_notified);
        if mails != usize::from(notified) {
            wrongs.push(format!("the buyer of {:?} gets {mails} mails", part.number));
        }
    }
    wrongs
}

fn is_shipped_by_seller(seen: &Seen, part: &SellerOrder) -> bool {
    seen.stories.values().any(|story| {
        let Some(Deed::Ship(seller, report)) = &story.deed else {
            return false;
        };
        *seller == part.seller
            && part.parcel().map(|parcel| &parcel.tracking_number) == Some(&report.tracking_number)
    })
}
