//! The port of lanes with one seller a statement, as a PostgreSQL that is distributed by seller takes it: a statement that locks
//! or changes rows goes to one node there, and to one alone. What is due is read of all sellers, without locks; each lane is then
//! taken by a statement of its own, which finds out for itself whether it is still due.

mod aside;
mod claim;
mod look;
mod room;
mod settle;
mod top_up;

use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use futures_util::{StreamExt, TryStreamExt, stream};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{Claimed, Conclusion, Lanes, Release, Room, TopUp, ToppedUp};

use self::{
    aside::{SetAside, Wake},
    claim::Claim,
    look::{Candidate, Due, Forgotten},
    room::Left,
    settle::Settlement,
    top_up::Prolong,
};
use super::{
    claim::ClaimRow,
    lanes::{StoredLanes, topped_up},
    top_up::ProlongedRow,
};

/// How many lanes are seen to at the same time, each over a connection of its own.
const AT_A_TIME: usize = 8;

/// Lanes of deliveries, one at a time.
pub(crate) struct LanesBySeller(pub(crate) StoredLanes);

#[async_trait]
impl Lanes for LanesBySeller {
    async fn claim(&self, fence: Uuid, room: Room) -> Result<Claimed, StoreError> {
        let look = Due::new(&room);
        let reads = &self.0.reads;
        let mut waiting = reads
            .ask(|lent| async move { look.get_results::<Candidate>(&mut lent.connection()).await })
            .await?;
        let not_all_seen = look::may_have_missed_some(&waiting);
        let mut left = Left::of(&room);
        let mut claimed = Vec::new();
        // What the lanes of one go did not need is the next one's.
        loop {
            let chosen = left.choose(&mut waiting);
            if chosen.is_empty() {
                break;
            }
            let claims = chosen.into_iter().map(|(lane, number)| async move {
                let claim = Claim::new(&lane, fence, number);
                let rows = reads
                    .ask(|lent| async move { claim.get_results::<ClaimRow>(&mut lent.connection()).await });
                rows.await.map(|rows| (lane, number, rows))
            });
            for (lane, number, rows) in whatever_succeeds(claims).await? {
                let given = rows.iter().filter(|row| row.due.is_some()).count();
                left.give_back(&lane, number, given);
                claimed.extend(rows);
            }
        }
        let (live, others): (Vec<_>, Vec<_>) = claimed.into_iter().partition(ClaimRow::is_live);
        let set_aside = self.set_aside(&others).await;
        Ok(Claimed {
            lanes: self.0.lanes(fence, live),
            set_aside,
            more: not_all_seen || !waiting.is_empty(),
        })
    }

    async fn top_up(&self, held: &[TopUp]) -> Result<Vec<ToppedUp>, StoreError> {
        let prolongs: Vec<_> = held.iter().map(Prolong::new).collect();
        let prolongs = prolongs.into_iter().map(|prolong| {
            self.0
                .reads
                .ask(|lent| async move { prolong.get_results::<ProlongedRow>(&mut lent.connection()).await })
        });
        let rows = whatever_succeeds(prolongs).await?;
        Ok(topped_up(rows.into_iter().flatten()))
    }

    /// Each lane's ends stand or fall together. What was recorded before a failure is sent again with the rest, and changes
    /// nothing then: attempt and fence have gone on.
    async fn settle(&self, conclusions: &[Conclusion], released: &[Release]) -> Result<(), StoreError> {
        let settlements = Settlement::by_lane(conclusions, released)?;
        let sent = settlements.into_iter().map(|settlement| {
            self.0
                .reads
                .ask(|lent| async move { settlement.send(lent.connection()).await })
        });
        let sent: Vec<Result<(), StoreError>> =
            stream::iter(sent).buffer_unordered(AT_A_TIME).collect().await;
        sent.into_iter().collect()
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        let reads = &self.0.reads;
        let forgotten = reads
            .ask(|lent| async move {
                Forgotten
                    .get_results::<(Uuid, Uuid)>(&mut lent.connection())
                    .await
            })
            .await?;
        let woken = forgotten.into_iter().map(|(seller, lane)| {
            reads.ask(move |lent| async move { Wake { seller, lane }.execute(&mut lent.connection()).await })
        });
        stream::iter(woken)
            .buffer_unordered(AT_A_TIME)
            .try_fold(0, async |sum, woken| Ok(sum + woken))
            .await
    }
}

impl LanesBySeller {
    /// How many of them were. What fails here is tried again with the next claim, for the lanes are still due.
    async fn set_aside(&self, rows: &[ClaimRow]) -> usize {
        let aside = rows.iter().map(|row| SetAside {
            seller: row.seller_id,
            lane: row.id,
        });
        let aside: Vec<_> = aside.collect();
        let aside = aside.into_iter().map(|aside| {
            self.0
                .reads
                .ask(|lent| async move { aside.get_results::<(Uuid, Uuid)>(&mut lent.connection()).await })
        });
        match whatever_succeeds(aside).await {
            Ok(set) => set.iter().map(Vec::len).sum(),
            Err(error) => {
                tracing::warn!(error = %error, "lanes that may not be worked on could not be set aside");
                0
            }
        }
    }
}

/// The answers of the statements that succeed, in the order of the statements; a failure where none does. A lane that is taken
/// has to be worked on, whatever became of another one.
async fn whatever_succeeds<T>(
    statements: impl Iterator<Item = impl Future<Output = Result<T, StoreError>>>,
) -> Result<Vec<T>, StoreError> {
    let answers: Vec<_> = stream::iter(statements).buffered(AT_A_TIME).collect().await;
    let (mut succeeded, mut failure) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(answer) => succeeded.push(answer),
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    tracing::warn!(error = %earlier, "a lane could not be seen to");
                }
            }
        }
    }
    match failure {
        Some(error) if succeeded.is_empty() => Err(error),
        Some(error) => {
            tracing::warn!(error = %error, "a lane could not be seen to");
            Ok(succeeded)
        }
        None => Ok(succeeded),
    }
}

#[cfg(test)]
mod tests {
    use diesel::{debug_query, pg::Pg};
    use webhooks::{Hold, LaneKey};

    use super::*;

    fn hold() -> Hold {
        Hold {
            lane: LaneKey {
                seller: Uuid::from_u128(1).into(),
                subscription: Uuid::from_u128(2).into(),
            },
            fence: Uuid::from_u128(3),
        }
    }

    /// The text of each statement that locks or changes rows.
    fn statements() -> Vec<String> {
        let top_up = TopUp {
            hold: hold(),
            running: Vec::new(),
            room: 1,
            repeats: 1,
        };
        let lane = Candidate {
            seller: Uuid::nil(),
            id: Uuid::nil(),
            application: Uuid::nil(),
            failing: false,
        };
        let (seller, id) = (Uuid::nil(), Uuid::nil());
        let mut statements = vec![
            debug_query::<Pg, _>(&Claim::new(&lane, Uuid::nil(), 1)).to_string(),
            debug_query::<Pg, _>(&Prolong::new(&top_up)).to_string(),
            debug_query::<Pg, _>(&SetAside { seller, lane: id }).to_string(),
            debug_query::<Pg, _>(&Wake { seller, lane: id }).to_string(),
        ];
        statements.extend(settle::texts());
        statements
    }

    #[test]
    fn no_row_is_reached_but_by_its_seller() {
        for text in statements() {
            let tables = text.matches(" subscriptions s").count() + text.matches(" deliveries d").count();
            let sellers = text.matches(".seller_id = $").count();
            assert!(tables > 0 && tables == sellers, "{tables} and {sellers}: {text}");
        }
    }
}
