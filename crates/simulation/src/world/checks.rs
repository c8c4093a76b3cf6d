//! The judgement: what must hold when all is over, whatever happened.

mod deliveries;
mod effects;
mod feed;

use super::{history::Seen, trade::Market};
use crate::Database;

/// Everything that does not hold after a run of trade.
pub(crate) fn trade(seen: &Seen, database: &Database, market: &Market) -> Vec<String> {
    let mut wrongs = effects::wrongs(seen, database, market);
    wrongs.extend(deliveries::wrongs(seen, database, market));
    wrongs.extend(feed::wrongs(seen, database));
    wrongs
}
