//! TLS handshakes that leave most of their thread to others.
//!
//! A signature by a key of RSA takes as long as many requests, and one client may begin hundreds of handshakes at
//! once. So a thread goes on with one of them at a time, and then rests from them for three times as long.

use std::future::poll_fn;
use std::mem::replace;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use tokio::sync::Semaphore;
use tokio::task::{spawn_local, yield_now};
use tokio::time::{Instant, sleep};

/// What takes less is followed by no rest: the timer is not that fine.
const SHORT: Duration = Duration::from_micros(250);

/// The handshakes of a thread.
#[derive(Clone)]
pub(super) struct Handshakes(Arc<Semaphore>);

impl Handshakes {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// The handshake, continued in its turns: in the order in which its peers' bytes arrive.
    pub(super) fn in_turn<F: Future>(&self, handshake: F) -> impl Future<Output = F::Output> + use<F> {
        let turns = Arc::clone(&self.0);
        async move {
            let mut handshake = pin!(handshake);
            loop {
                // Never an error: the semaphore is never closed.
                let turn = Arc::clone(&turns).acquire_owned().await;
                let began = Instant::now();
                let polled = poll!(handshake.as_mut());
                let took = began.elapsed();
                spawn_local(async move {
                    if took < SHORT {
                        yield_now().await;
                    } else {
                        sleep(3 * took).await;
                    }
                    drop(turn);
                });
                if let Poll::Ready(made) = polled {
                    return made;
                }
                woken().await;
            }
        }
    }
}

/// Waits until the task is woken, here by what the handshake waits for.
async fn woken() {
    let mut is_woken = false;
    poll_fn(|_| {
        if replace(&mut is_woken, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::pending;
    use std::rc::Rc;

    use futures_util::future::join_all;
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn handshakes_leave_most_of_their_thread_to_others_in_the_order_of_arrival() {
        const SIGNATURE: Duration = Duration::from_millis(4);
        let local = LocalSet::new();
        let work = local.run_until(async {
            let (handshakes, made) = (Handshakes::new(), Rc::new(RefCell::new(Vec::new())));
            // One that waits for its client holds up no other.
            let silent = spawn_local(handshakes.in_turn(pending::<()>()));
            let began = Instant::now();
            let all = (0..10).map(|n| {
                let made = Rc::clone(&made);
                spawn_local(handshakes.in_turn(async move {
                    let began = Instant::now();
                    while began.elapsed() < SIGNATURE {}
                    made.borrow_mut().push(n);
                }))
            });
            join_all(all.collect::<Vec<_>>()).await;
            assert!(began.elapsed() >= 9 * 4 * SIGNATURE);
            assert!(made.borrow().is_sorted());
            silent.abort();
        });
        work.await;
    }
}
