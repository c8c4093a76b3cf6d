//! How others hear of a task's end.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use super::lock;

enum Slot<T> {
    Running(Option<Waker>),
    Ended(T),
    /// It has died, or its value was taken.
    Gone,
}

/// A task as others see it. Dropped, the task goes on.
pub struct Handle<T>(Arc<Mutex<Slot<T>>>);

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

impl<T> Handle<T> {
    /// Waits for the end: nothing where the task has died.
    pub async fn ended(self) -> Option<T> {
        poll_fn(|context| {
            let mut slot = lock(&self.0);
            match std::mem::replace(&mut *slot, Slot::Gone) {
                Slot::Ended(value) => Poll::Ready(Some(value)),
                Slot::Gone => Poll::Ready(None),
                Slot::Running(_) => {
                    *slot = Slot::Running(Some(context.waker().clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// What it came to, once it has ended.
    pub(super) fn take(&self) -> Option<T> {
        let mut slot = lock(&self.0);
        match std::mem::replace(&mut *slot, Slot::Gone) {
            Slot::Ended(value) => Some(value),
            other => {
                *slot = other;
                None
            }
        }
    }
}

/// Says that the task is gone unless it has ended before.
struct Report<T>(Arc<Mutex<Slot<T>>>);

impl<T> Report<T> {
    fn put(&self, end: Slot<T>) {
        let mut slot = lock(&self.0);
        if let Slot::Running(waiting) = &mut *slot {
            let waiting = waiting.take();
            *slot = end;
            drop(slot);
            if let Some(waker) = waiting {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        self.put(Slot::Gone);
    }
}

/// The work as a task that reports its end.
pub(super) fn reporting<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> (Handle<T>, impl Future<Output = ()> + Send + 'static) {
    let slot = Arc::new(Mutex::new(Slot::Running(None)));
    let report = Report(Arc::clone(&slot));
    let task = async move {
        let value = work.await;
        report.put(Slot::Ended(value));
    };
    (Handle(slot), task)
}
