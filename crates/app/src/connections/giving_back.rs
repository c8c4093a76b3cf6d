//! Memory that connections let go of when they rest, on its way back to the system.
//!
//! The allocator keeps what was freed for a second, lest it be wanted again, and then gives it back when something else makes it
//! look: a busy program does that all the time, one whose connections have all gone to rest not at all. So this thread asks it
//! for something large then, which is enough. Nothing of that is ever touched, so it takes no memory of its own.

use std::{cell::Cell, hint::black_box, rc::Rc, time::Duration};

use tokio::{task::spawn_local, time::sleep};

/// Longer than the allocator keeps what was freed.
const KEPT: Duration = Duration::from_secs(2);

/// Larger than what the allocator cuts from its pages.
const LARGE: usize = 1024 * 1024;

/// What a thread knows of it: whether memory is on its way already.
#[derive(Clone, Default)]
pub(super) struct GivingBack(Rc<Cell<bool>>);

impl GivingBack {
    /// Has what was freed until now given back, and what is freed meanwhile.
    pub(super) fn begin(&self) {
        if self.0.replace(true) {
            return;
        }
        let under_way = Rc::clone(&self.0);
        spawn_local(async move {
            sleep(KEPT).await;
            under_way.set(false);
            drop(black_box(Vec::<u8>::with_capacity(LARGE)));
        });
    }
}
