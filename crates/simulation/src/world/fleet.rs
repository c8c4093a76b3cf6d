//! The processes of a deployment: they are started, die, and are started again.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::{
    deed::Deed,
    history::{History, Reply},
    process::Process,
    worker::Delivering,
};
use crate::{Handle, Place, Simulator, executor::lock};

/// Every process. Clones are the same fleet.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) simulator: Simulator,
    pub(crate) history: History,
    pub(crate) process: Process,
    pub(crate) delivering: Delivering,
    /// Which of them live.
    pub(crate) living: Arc<Mutex<Vec<bool>>>,
    /// No trouble is made any more.
    pub(crate) calm: Arc<AtomicBool>,
}

impl Fleet {
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Starts a process, and its worker with it.
    pub(crate) fn start(&self, number: usize) {
        if let Some(lives) = lock(&self.living).get_mut(number) {
            *lives = true;
        }
        let worker = self.delivering.clone().work();
        drop(self.simulator.spawn(Place::Process(number), worker));
    }

    /// Kills a process between two of its steps.
    pub(crate) fn kill(&self, number: usize) {
        if let Some(lives) = lock(&self.living).get_mut(number) {
            *lives = false;
        }
        self.history.seen().deaths += 1;
        self.history
            .note(self.simulator.now(), || format!("process {number} dies"));
        self.simulator.kill(Place::Process(number));
    }

    pub(crate) fn start_all(&self) {
        let dead: Vec<_> = {
            let living = lock(&self.living);
            let numbered = living.iter().enumerate();
            numbered
                .filter(|(_, lives)| !**lives)
                .map(|(number, _)| number)
                .collect()
        };
        for number in dead {
            self.start(number);
        }
    }

    /// Hands a request to a process that lives, if any does.
    pub(crate) fn handle(&self, key: &str, deed: Deed) -> Option<Handle<Reply>> {
        let living: Vec<_> = {
            let living = lock(&self.living);
            let numbered = living.iter().enumerate();
            numbered
                .filter(|(_, lives)| **lives)
                .map(|(number, _)| number)
                .collect()
        };
        let number = self.simulator.draw(|chance| chance.choice(&living).copied())?;
        let (process, history, simulator) =
            (self.process.clone(), self.history.clone(), self.simulator.clone());
        let key = key.to_owned();
        let handling = async move {
            let reply = process.handle(&key, deed).await;
            history.note(simulator.now(), || {
                format!("process {number} answers {key} {} {}", reply.status, reply.body)
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
        Some(self.simulator.spawn(Place::Process(number), handling))
    }
}
