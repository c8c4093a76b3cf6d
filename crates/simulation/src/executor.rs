//! Many tasks on one thread: which one goes on next is drawn by lot, and time passes only when none can.
//!
//! A seed decides everything, so the same seed gives the same run.

mod handle;
mod signal;
mod time;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use chrono::{DateTime, Utc};
use fastrand::Rng;
use futures_util::{FutureExt, future::BoxFuture};

pub use handle::Handle;
pub(crate) use signal::Signal;

use crate::Met;

/// No run takes more steps than this: one that does goes round in a circle.
const STEPS_MAX: u64 = 3_000_000;

/// Where a task runs, and with what it dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Clients, receivers, and whoever looks on: they live as long as the run.
    World,
    /// The database's server: it finishes what it was asked for, whether or not somebody waits.
    Server,
    /// A process of the product, by its number. It may die.
    Process(usize),
}

/// Why a run cannot come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// Everybody waits for somebody else, and for no time.
    #[error("everybody waits for somebody else")]
    Deadlock,
    /// So many steps were taken that there is no end to be expected.
    #[error("the run does not come to an end")]
    Endless,
}

type TaskId = u64;

/// Tasks that can go on.
#[derive(Default)]
struct Ready(Mutex<Vec<TaskId>>);

struct Woken {
    task: TaskId,
    ready: Arc<Ready>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let mut ready = lock(&self.ready.0);
        if !ready.contains(&self.task) {
            ready.push(self.task);
        }
    }
}

struct Task {
    place: Place,
    /// Nothing while it is being polled.
    future: Option<BoxFuture<'static, ()>>,
    waker: Waker,
}

struct State {
    now: DateTime<Utc>,
    chance: Rng,
    numbers: u64,
    tasks: BTreeMap<TaskId, Task>,
    timers: BTreeMap<(DateTime<Utc>, u64), Waker>,
    steps: u64,
    met: BTreeMap<Met, u64>,
    /// Whether what is dropped now dies.
    killing: bool,
}

/// The one thread, its clock and its lots. Clones are the same one.
#[derive(Clone)]
pub struct Simulator {
    state: Arc<Mutex<State>>,
    ready: Arc<Ready>,
}

impl std::fmt::Debug for Simulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulator {
    /// A simulator whose every lot follows from `seed`, at noon of a quiet day.
    pub fn new(seed: u64) -> Self {
        let state = State {
            now: DateTime::<Utc>::UNIX_EPOCH + chrono::TimeDelta::days(20_000),
            chance: Rng::with_seed(seed),
            numbers: 0,
            tasks: BTreeMap::new(),
            timers: BTreeMap::new(),
            steps: 0,
            met: BTreeMap::new(),
            killing: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            ready: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A lot.
    pub fn draw<T>(&self, lot: impl FnOnce(&mut Rng) -> T) -> T {
        lot(&mut self.state().chance)
    }

    /// True in so many of a thousand cases.
    pub fn happens(&self, per_mille: u32) -> bool {
        per_mille > 0 && self.draw(|chance| chance.u32(..1_000)) < per_mille
    }

    /// A number that no other call gets; later ones are greater.
    pub fn number(&self) -> u64 {
        let mut state = self.state();
        state.numbers += 1;
        state.numbers
    }

    /// Begins a task. Whoever has the handle hears of its end, also where it dies.
    pub fn spawn<T: Send + 'static>(
        &self,
        place: Place,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Handle<T> {
        let (handle, reporting) = handle::reporting(work);
        let id = self.number();
        let woken = Arc::new(Woken {
            task: id,
            ready: Arc::clone(&self.ready),
        });
        let task = Task {
            place,
            future: Some(reporting.boxed()),
            waker: Waker::from(Arc::clone(&woken)),
        };
        self.state().tasks.insert(id, task);
        woken.wake();
        handle
    }

    /// Everything that runs at a place dies on the spot.
    pub fn kill(&self, place: Place) {
        let mut state = self.state();
        let tasks = std::mem::take(&mut state.tasks);
        let (dead, living) = tasks
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, task)| task.place == place);
        state.tasks = living;
        state.killing = true;
        drop(state);
        // What they held may call the simulator while it is dropped.
        drop(dead);
        self.state().killing = false;
    }

    /// Whether whoever is dropped at this moment is killed.
    pub(crate) fn is_killing(&self) -> bool {
        self.state().killing
    }

    /// Counts something that has happened.
    pub(crate) fn count(&self, met: Met) {
        *self.state().met.entry(met).or_default() += 1;
    }

    /// How often each thing has happened.
    pub(crate) fn met(&self) -> BTreeMap<Met, u64> {
        self.state().met.clone()
    }

    /// Runs until `main` has ended, and drops whatever else there is.
    pub fn run<T: Send + 'static>(&self, main: impl Future<Output = T> + Send + 'static) -> Result<T, Stuck> {
        let handle = self.spawn(Place::World, main);
        let end = loop {
            if let Some(value) = handle.take() {
                break Ok(value);
            }
            if self.state().steps > STEPS_MAX {
                break Err(Stuck::Endless);
            }
            if !self.step() && !self.pass_time() {
                break Err(Stuck::Deadlock);
            }
        };
        self.clear();
        end
    }

    /// How many steps were taken: the same for the same seed.
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// Drops every task, also those that are begun while others are dropped.
    fn clear(&self) {
        loop {
            let tasks = std::mem::take(&mut self.state().tasks);
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        self.state().timers.clear();
    }

    /// Lets one of those go on who can; false where nobody can.
    fn step(&self) -> bool {
        let next = {
            let mut ready = lock(&self.ready.0);
            if ready.is_empty() {
                return false;
            }
            let place = self.draw(|chance| chance.usize(..ready.len()));
            ready.swap_remove(place)
        };
        let taken = {
            let mut state = self.state();
            state.steps += 1;
            let task = state.tasks.get_mut(&next);
            task.and_then(|task| Some((task.future.take()?, task.waker.clone())))
        };
        let Some((mut future, waker)) = taken else {
            return true;
        };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut state = self.state();
        match polled {
            Poll::Ready(()) => {
                let ended = state.tasks.remove(&next);
                drop(state);
                drop((ended, future));
            }
            // One that has been killed meanwhile is not there any more.
            Poll::Pending => {
                if let Some(task) = state.tasks.get_mut(&next) {
                    task.future = Some(future);
                } else {
                    drop(state);
                    drop(future);
                }
            }
        }
        true
    }
}
