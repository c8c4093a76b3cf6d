//! Requests that wait for an event. They hold no connection: one look-up of the process serves them all.

use std::collections::HashMap;
use std::mem::replace;
use std::sync::Arc;
use std::time::Duration;

use kernel::{SellerId, StoreError};
use oauth::ClientId;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use web::places::{self, Places};
use webhooks::JournalReader;

/// The most requests of an application and seller, and of all, that wait at once in a process.
const MOST_OF_ONE: usize = 5;
const MOST: usize = 2_000;
/// The pause between two look-ups.
const PAUSE: Duration = Duration::from_millis(250);

/// The requests of one process that wait; shared by all server threads.
#[derive(Clone)]
pub struct Waiting(Arc<Shared>);

struct Shared {
    journals: Arc<dyn JournalReader>,
    places: Places<(ClientId, SellerId)>,
    /// The task that looks, unless it has ended because nobody waited.
    look: Mutex<Option<JoinHandle<()>>>,
    seen: watch::Sender<Seen>,
}

/// The numbers of the sellers' last events; None if they could not be read.
type Seen = Option<HashMap<SellerId, i64>>;

/// A place among those that wait; given up when it is dropped.
pub(super) struct Place {
    _taken: places::Place,
    seller: SellerId,
    seen: watch::Receiver<Seen>,
}

impl Waiting {
    pub fn new(journals: Arc<dyn JournalReader>) -> Self {
        Self(Arc::new(Shared {
            journals,
            places: Places::default(),
            look: Mutex::default(),
            seen: watch::Sender::new(Some(HashMap::new())),
        }))
    }

    pub(super) fn journals(&self) -> &dyn JournalReader {
        self.0.journals.as_ref()
    }

    /// Takes a place; None if too many wait. The look-ups go on in a task while somebody waits.
    pub(super) fn enter(&self, client_id: ClientId, seller: SellerId) -> Option<Place> {
        // Held meanwhile, so that the task does not end between the two.
        let mut look = self.0.look.lock();
        let most = |taken| if taken < MOST { MOST_OF_ONE } else { 0 };
        let taken = self.0.places.take((client_id, seller), most)?;
        // Also if the last look-up panicked.
        if look.as_ref().is_none_or(JoinHandle::is_finished) {
            *look = Some(tokio::spawn(self.clone().look()));
        }
        metrics::gauge!("journal_readers_waiting").increment(1.0);
        Some(Place {
            _taken: taken,
            seller,
            seen: self.0.seen.subscribe(),
        })
    }

    /// Looks until nobody waits.
    async fn look(self) {
        let mut has_failed = false;
        loop {
            sleep(PAUSE).await;
            let sellers: Vec<_> = {
                let mut look = self.0.look.lock();
                let holders = self.0.places.holders();
                if holders.is_empty() {
                    *look = None;
                    // The next ones do not go by what was seen long ago.
                    self.0.seen.send_replace(Some(HashMap::new()));
                    return;
                }
                holders.into_iter().map(|(_, seller)| seller).collect()
            };
            let numbers = self.0.journals.last_numbers(&sellers).await.ok();
            // From the second failure in a row the requests that wait answer 500, and their log says why. One may
            // be a moment's, and it would end the waits of all.
            let is_repeated = replace(&mut has_failed, numbers.is_none());
            if has_failed && !is_repeated {
                continue;
            }
            // Only news wakes those that wait.
            self.0.seen.send_if_modified(|seen| {
                let is_new = numbers.is_none() || *seen != numbers;
                *seen = numbers;
                is_new
            });
        }
    }
}

impl Place {
    /// Waits until the seller's journal goes beyond this number.
    pub(super) async fn event_after(&mut self, number: i64) -> Result<(), StoreError> {
        let seller = self.seller;
        // A look-up that failed before is not this request's.
        let mut is_earlier = true;
        let ends_wait = |seen: &Seen| {
            let was_earlier = replace(&mut is_earlier, false);
            match seen {
                None => !was_earlier,
                Some(numbers) => numbers.get(&seller).is_some_and(|last| *last > number),
            }
        };
        // The sender lives as long as the listener, whose request this is.
        match self.seen.wait_for(ends_wait).await {
            Ok(seen) if seen.is_none() => {
                Err(StoreError::Unavailable("the journals could not be read".into()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::gauge!("journal_readers_waiting").decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use webhooks::MockJournalReader;

    use super::*;

    fn of(n: u128) -> (ClientId, SellerId) {
        (Uuid::from_u128(n).into(), Uuid::from_u128(n).into())
    }

    #[tokio::test(start_paused = true)]
    async fn one_look_up_serves_all_until_nobody_waits() {
        let mut journals = MockJournalReader::new();
        journals
            .expect_last_numbers()
            .times(2)
            .returning(|sellers| Ok(sellers.iter().map(|seller| (*seller, 7)).collect()));
        let waiting = Waiting::new(Arc::new(journals));
        for _ in 0..2 {
            let mut places: Vec<_> = (0..20)
                .map(|n| waiting.enter(of(n).0, of(n).1).unwrap())
                .collect();
            for place in &mut places {
                place.event_after(6).await.unwrap();
            }
            drop(places);
            sleep(PAUSE * 3).await;
        }
        assert!(waiting.0.look.lock().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_waits_for_its_own_seller_and_for_a_later_event() {
        let mut journals = MockJournalReader::new();
        let mut last = 5;
        journals.expect_last_numbers().returning(move |_| {
            last += 1;
            Ok(HashMap::from([(of(1).1, last), (of(2).1, 100)]))
        });
        let waiting = Waiting::new(Arc::new(journals));
        let mut place = waiting.enter(of(1).0, of(1).1).unwrap();
        let began = tokio::time::Instant::now();
        place.event_after(8).await.unwrap();
        assert_eq!(began.elapsed(), PAUSE * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn two_failed_look_ups_in_a_row_end_the_wait() {
        let mut journals = MockJournalReader::new();
        let mut looks = [false, true, false, false].into_iter();
        journals.expect_last_numbers().returning(move |_| {
            let answers = looks.next().unwrap();
            let numbers = answers.then(HashMap::new);
            numbers.ok_or_else(|| StoreError::unexpected("gone"))
        });
        let waiting = Waiting::new(Arc::new(journals));
        let mut place = waiting.enter(of(1).0, of(1).1).unwrap();
        let began = tokio::time::Instant::now();
        assert!(place.event_after(0).await.is_err());
        assert_eq!(began.elapsed(), PAUSE * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_look_begins_anew_after_a_panic() {
        let mut journals = MockJournalReader::new();
        let panics = |_: &[SellerId]| panic!("the first look-up");
        journals.expect_last_numbers().times(1).returning(panics);
        let numbers = |_: &[SellerId]| Ok(HashMap::from([(of(1).1, 7)]));
        journals.expect_last_numbers().returning(numbers);
        let waiting = Waiting::new(Arc::new(journals));
        let mut place = waiting.enter(of(1).0, of(1).1).unwrap();
        sleep(PAUSE * 2).await;
        let _next = waiting.enter(of(2).0, of(2).1).unwrap();
        place.event_after(6).await.unwrap();
    }

    #[tokio::test]
    async fn places_are_few() {
        let waiting = Waiting::new(Arc::new(MockJournalReader::new()));
        let enter = |n| waiting.enter(of(n).0, of(n).1);
        let mut places: Vec<_> = (0..5).map_while(|_| enter(1)).collect();
        assert!(places.len() == 5 && enter(1).is_none());
        places.pop();
        places.extend(enter(1));
        places.extend((2..).map_while(enter));
        assert_eq!(places.len(), MOST);
    }
}
