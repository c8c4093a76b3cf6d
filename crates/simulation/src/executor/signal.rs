//! A signal that is given once, and that anybody can wait for.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use super::lock;

#[derive(Debug, Default)]
struct State {
    given: bool,
    waiting: Vec<Waker>,
}

/// The signal. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signal(Arc<Mutex<State>>);

impl Signal {
    pub(crate) fn give(&self) {
        let waiting = {
            let mut state = lock(&self.0);
            state.given = true;
            std::mem::take(&mut state.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }

    pub(crate) async fn given(&self) {
        poll_fn(|context| {
            let mut state = lock(&self.0);
            if state.given {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
