//! Somebody who follows the change feed, as the marketplace does.

use changes::{ChangeCursor, ChangeReader};

use super::history::History;
use crate::{Link, Simulator};

/// A reader with its place in the feed.
pub(crate) struct Follower {
    pub(crate) simulator: Simulator,
    pub(crate) history: History,
    pub(crate) link: Link,
    pub(crate) place: Option<ChangeCursor>,
}

impl Follower {
    /// Reads a page; false where there was nothing on it, or no page to be had.
    pub(crate) async fn read(&mut self) -> bool {
        let limit = self.simulator.draw(|chance| chance.u16(1..5));
        match self.link.changes(self.place.clone(), limit).await {
            Err(_) => false,
            Ok(page) => {
                let any = !page.items.is_empty();
                self.history.seen().followed.extend(page.items);
                self.place = Some(page.next);
                any
            }
        }
    }
}
