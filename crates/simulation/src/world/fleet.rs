//! The processes of the API, as their clients reach them.

use super::{
    deed::Deed,
    history::{History, Reply},
    process::{IN_PROGRESS, Process},
    ranks::Ranks,
};
use crate::{Handle, Met, Simulator};

/// Every process. Clones are the same fleet.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) simulator: Simulator,
    pub(crate) history: History,
    pub(crate) process: Process,
    pub(crate) ranks: Ranks,
}

impl Fleet {
    /// Hands a request to a process that lives, if any does.
    pub(crate) fn handle(&self, key: &str, deed: Deed) -> Option<Handle<Reply>> {
        let (process, history, simulator) =
            (self.process.clone(), self.history.clone(), self.simulator.clone());
        let key = key.to_owned();
        let handling = async move {
            let reply = process.handle(&key, deed).await;
            match reply.status {
                IN_PROGRESS => simulator.count(Met::KeyInProgress),
                400..=499 => simulator.count(Met::RequestRefused),
                500.. => simulator.count(Met::RequestFailed),
                _ => {}
            }
            history.note(simulator.now(), || {
                format!("{key} is answered {} {}", reply.status, reply.body)
            });
            history
                .seen()
                .stories
                .entry(key)
                .or_default()
                .given
                .push(reply.clone());
            reply
        };
        self.ranks.run(handling).map(|(_, handle)| handle)
    }
}
