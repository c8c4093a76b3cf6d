//! TLS handshakes that leave their thread to others.
//!
//! A signature by a key of RSA takes as long as many requests, and one client may begin hundreds of handshakes at
//! once. So a thread goes on with one of them, and then runs what else is ready.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::paced::{Pause, wake_after_others};

/// The handshakes of a thread.
#[derive(Clone, Default)]
pub(super) struct Handshakes {
    /// Since one of them was polled.
    pause: Rc<RefCell<Option<Arc<Pause>>>>,
}

impl Handshakes {
    /// The handshake, polled in its turn.
    pub(super) fn in_turn<F: Future>(&self, handshake: F) -> impl Future<Output = F::Output> + use<F> {
        let pause = Rc::clone(&self.pause);
        async move {
            let mut handshake = pin!(handshake);
            let poll = poll_fn(|cx| {
                let mut pause = pause.borrow_mut();
                if pause.as_ref().is_some_and(|pause| !pause.is_over()) {
                    wake_after_others(cx.waker());
                    return Poll::Pending;
                }
                *pause = Some(Pause::begin(Waker::noop()));
                handshake.as_mut().poll(cx)
            });
            poll.await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::task::{LocalSet, spawn_local, yield_now};
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test]
    async fn others_have_their_turn_between_two_handshakes() {
        let local = LocalSet::new();
        let work = local.run_until(async {
            let (handshakes, made) = (Handshakes::default(), Rc::new(Cell::new(0)));
            let all = (0..50).map(|_| {
                let made = Rc::clone(&made);
                spawn_local(handshakes.in_turn(async move { made.update(|made| made + 1) }))
            });
            let all: Vec<_> = all.collect();
            let mut seen = 0;
            while made.get() < 50 {
                yield_now().await;
                assert!(made.get() - seen <= 1, "{} at once", made.get() - seen);
                seen = made.get();
            }
            join_all(all).await;
        });
        work.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_waits_for_its_client_holds_up_no_other() {
        let local = LocalSet::new();
        let work = local.run_until(async {
            let handshakes = Handshakes::default();
            let silent = spawn_local(handshakes.in_turn(std::future::pending::<()>()));
            let began = Instant::now();
            handshakes.in_turn(sleep(Duration::from_secs(1))).await;
            assert_eq!(began.elapsed().as_secs(), 1);
            silent.abort();
        });
        work.await;
    }
}
