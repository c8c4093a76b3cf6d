//! Processes that live and die, whatever they are there for.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::history::History;
use crate::{
    Handle, Met, Place, Simulator,
    executor::{Signal, lock},
};

/// Every process of a deployment. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Ranks {
    pub(crate) simulator: Simulator,
    pub(crate) history: History,
    /// Which of them live and take requests.
    living: Arc<Mutex<Vec<bool>>>,
    /// By which each is asked to stop.
    stops: Arc<Mutex<Vec<Signal>>>,
    calm: Arc<AtomicBool>,
    /// What each does from its start on, beside answering, until it is asked to stop.
    begins: Arc<dyn Fn(usize, Signal) + Send + Sync>,
}

impl Ranks {
    /// So many processes, none of them started; `calm` says that no trouble is made any more.
    pub(crate) fn new(
        (simulator, history): (&Simulator, &History),
        processes: usize,
        calm: &Arc<AtomicBool>,
        begins: impl Fn(usize, Signal) + Send + Sync + 'static,
    ) -> Self {
        Self {
            simulator: simulator.clone(),
            history: history.clone(),
            living: Arc::new(Mutex::new(vec![false; processes])),
            stops: Arc::new(Mutex::new(vec![Signal::default(); processes])),
            calm: Arc::clone(calm),
            begins: Arc::new(begins),
        }
    }

    /// How many there are, dead or alive.
    pub(crate) fn number(&self) -> usize {
        lock(&self.living).len()
    }

    /// No trouble is made any more.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// From now on no trouble is made, and everybody lives.
    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.start_all();
    }

    pub(crate) fn start(&self, number: usize) {
        if let Some(lives) = lock(&self.living).get_mut(number) {
            *lives = true;
        }
        let stop = Signal::default();
        if let Some(last) = lock(&self.stops).get_mut(number) {
            *last = stop.clone();
        }
        (self.begins)(number, stop);
    }

    /// Asks a process to stop: it takes no more requests, and ends what it has begun.
    pub(crate) fn stop(&self, number: usize) {
        if let Some(lives) = lock(&self.living).get_mut(number) {
            *lives = false;
        }
        if let Some(stop) = lock(&self.stops).get(number) {
            stop.give();
        }
        self.simulator.count(Met::ProcessStopped);
        self.history
            .note(self.simulator.now(), || format!("process {number} is to stop"));
    }

    /// Kills a process between two of its steps.
    pub(crate) fn kill(&self, number: usize) {
        if let Some(lives) = lock(&self.living).get_mut(number) {
            *lives = false;
        }
        self.simulator.count(Met::ProcessDied);
        self.history
            .note(self.simulator.now(), || format!("process {number} dies"));
        self.simulator.kill(Place::Process(number));
    }

    pub(crate) fn start_all(&self) {
        for number in self.that(false) {
            self.start(number);
        }
    }

    fn that(&self, live: bool) -> Vec<usize> {
        let living = lock(&self.living);
        let numbered = living.iter().enumerate().filter(|(_, lives)| **lives == live);
        numbered.map(|(number, _)| number).collect()
    }

    /// Has some process that lives do something, if any does; tells its number too.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<(usize, Handle<T>)> {
        let living = self.that(true);
        let number = self.simulator.draw(|chance| chance.choice(&living).copied())?;
        let request = Request(self.simulator.clone());
        let running = async move {
            let done = work.await;
            drop(request);
            done
        };
        Some((number, self.simulator.spawn(Place::Process(number), running)))
    }
}

/// Something that a process does for somebody, and may die in.
struct Request(Simulator);

impl Drop for Request {
    fn drop(&mut self) {
        if self.0.is_killing() {
            self.0.count(Met::DiedInRequest);
        }
    }
}
