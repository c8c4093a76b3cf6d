//! Which server threads ask the database together.

use std::sync::atomic::{AtomicUsize, Ordering};

use adapter_postgres::{Database, Gatherers, Gathering};

/// Threads that ask together. A larger group costs the server less for each question, but all of its statements of a kind run
/// in one process of the server's, which two threads keep busy.
const TOGETHER: usize = 2;

/// Gives each thread what it asks by.
pub(super) struct Askers {
    database: Database,
    groups: Vec<Gatherers>,
    /// The thread that asks next.
    next: AtomicUsize,
}

impl Askers {
    /// For so many threads. What several of them share lives on the runtime that this is called on.
    pub(super) fn of(threads: usize, gathering: Gathering, database: &Database) -> Self {
        let groups = match gathering {
            Gathering::Grouped => threads / TOGETHER,
            Gathering::Router => 0,
        };
        Self {
            database: database.clone(),
            groups: (0..groups).map(|_| database.gatherers()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// For one more thread, in which this is called: what it does not share lives there.
    pub(super) fn next(&self) -> Gatherers {
        let thread = self.next.fetch_add(1, Ordering::Relaxed);
        let shared = self.groups.get(thread / TOGETHER);
        shared.cloned().unwrap_or_else(|| self.database.gatherers())
    }
}
