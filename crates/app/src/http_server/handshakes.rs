//! TLS handshakes that leave most of their thread to others, and to each network its share of the rest.
//!
//! A signature by a key of RSA takes as long as many requests, and one client may begin hundreds of handshakes at
//! once. So a thread goes on with one of them at a time, and then rests from them for three times as long. Networks take
//! turns: however many handshakes one begins, another's waits for one of each.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::mem::replace;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use tokio::sync::Semaphore;
use tokio::task::{spawn_local, yield_now};
use tokio::time::{Instant, sleep};
use web::places::{Network, network};

/// What takes less is followed by no rest: the timer is not that fine.
const SHORT: Duration = Duration::from_micros(250);

/// The handshakes of a thread.
#[derive(Clone)]
pub(super) struct Handshakes {
    turns: Arc<Semaphore>,
    /// By which one handshake of each network waits for its turn at a time.
    networks: Rc<RefCell<HashMap<Network, Arc<Semaphore>>>>,
}

impl Handshakes {
    pub(super) fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(1)),
            networks: Rc::default(),
        }
    }

    /// The handshake with this client, continued in its turns: those of a network in the order in which bytes arrive.
    pub(super) fn in_turn<F: Future>(
        &self,
        client: IpAddr,
        handshake: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let turns = Arc::clone(&self.turns);
        let mut networks = self.networks.borrow_mut();
        networks.retain(|_, waiting| Arc::strong_count(waiting) > 1);
        let first = networks.entry(network(client));
        let first = Arc::clone(first.or_insert_with(|| Arc::new(Semaphore::new(1))));
        async move {
            let mut handshake = pin!(handshake);
            loop {
                // Never errors: the semaphores are never closed.
                let first = first.acquire().await;
                let turn = Arc::clone(&turns).acquire_owned().await;
                drop(first);
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
    use std::future::pending;

    use futures_util::future::join_all;
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn handshakes_leave_most_of_their_thread_to_others_in_the_order_of_arrival() {
        const SIGNATURE: Duration = Duration::from_millis(4);
        let [one, other] = ["192.0.2.1", "198.51.100.1"].map(|client| client.parse().unwrap());
        let local = LocalSet::new();
        let work = local.run_until(async {
            let (handshakes, made) = (Handshakes::new(), Rc::new(RefCell::new(Vec::new())));
            // One that waits for its client holds up no other.
            let silent = spawn_local(handshakes.in_turn(one, pending::<()>()));
            let began = Instant::now();
            let all = (0..10).map(|n| {
                let made = Rc::clone(&made);
                let client = if n < 9 { one } else { other };
                spawn_local(handshakes.in_turn(client, async move {
                    let began = Instant::now();
                    while began.elapsed() < SIGNATURE {}
                    made.borrow_mut().push(n);
                }))
            });
            join_all(all.collect::<Vec<_>>()).await;
            assert!(began.elapsed() >= 9 * 4 * SIGNATURE);
            // Another network's, which comes last, waits for one or two of those before it.
            let place = made.borrow().iter().position(|n| *n == 9).unwrap();
            assert!(place <= 2, "{made:?}");
            made.borrow_mut().remove(place);
            assert!(made.borrow().is_sorted());
            silent.abort();
        });
        work.await;
    }
}
