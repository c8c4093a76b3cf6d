//! Claims on idempotency keys: taken and released outside of transactions, completed at the end of one.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use diesel::NotFound;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Nullable, SmallInt, Text, Uuid as SqlUuid};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use kernel::{Claim, Claimed, IdempotencyClaims, KeySpace, LOST_CLAIM, StoreError, StoredResponse};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::connection::error::{AnswerTimeout, is_lock_timeout};
use crate::connection::pool::Autocommit;
use crate::connection::shared::SharedConnection;
use crate::connection::{BEGIN, OpenConnection};
use crate::schema::{api_now, idempotency};
use crate::sealing::Sealing;
use crate::statement::{Only, statements};
use crate::unit_of_work::{TRANSACTION_TIMEOUT, Tx, checked};

statements! {
    "idempotency.sql";
    CLAIM: (SqlUuid, Text, SqlUuid, Binary, BigInt) -> Taken;
    RELEASE: (SqlUuid, Text, SqlUuid);
    LOCK_KEY: (SqlUuid, Text, SqlUuid, Binary) -> ClaimRow;
    COMPLETE: (SqlUuid, Text, SqlUuid, SmallInt, Binary, Nullable<Text>);
}

/// How long the outcome of a transaction is looked up: longer than the server keeps a transaction whose
/// client has gone.
const OUTCOME_TIMEOUT: Duration = TRANSACTION_TIMEOUT.saturating_add(Duration::from_secs(5));
/// Delay between attempts to reach the database during that look-up.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = idempotency, check_for_backend(Pg))]
pub(crate) struct ClaimRow {
    fence: Uuid,
    fingerprint: Vec<u8>,
    /// Offers, which are read together with keys, have a status too.
    #[diesel(select_expression = idempotency::status, sql_type = Nullable<SmallInt>)]
    answer_status: Option<i16>,
    body: Option<Vec<u8>>,
    etag: Option<String>,
}

/// Whether the claim replaced an expired one or an expired response.
type Taken = Only<Bool, bool>;

impl ClaimRow {
    /// The state of the key for this claim.
    pub(crate) fn claimed(self, claim: &Claim, sealing: &Sealing) -> Result<Claimed, StoreError> {
        if self.fence == claim.fence {
            return Ok(Claimed::Run);
        }
        if self.fingerprint != claim.fingerprint.bytes() {
            return Ok(Claimed::Reused);
        }
        Ok(self
            .stored_response(claim, sealing)?
            .map_or(Claimed::InProgress, Claimed::Completed))
    }

    /// The stored response, if there is one.
    fn stored_response(self, claim: &Claim, sealing: &Sealing) -> Result<Option<StoredResponse>, StoreError> {
        let (Some(status), Some(body)) = (self.answer_status, self.body) else {
            return Ok(None);
        };
        let corrupt = |_| StoreError::corrupt("idempotency", claim.key.as_str(), format!("status {status}"));
        Ok(Some(StoredResponse {
            status: u16::try_from(status).map_err(corrupt)?,
            body: sealing.open(claim, self.fence, &body)?,
            etag: self.etag,
        }))
    }
}

/// Claims and releases are autocommitted statements.
pub(crate) struct StoredClaims {
    pub(crate) statements: Autocommit,
    /// In shares of one connection, so that a claim is released while others of its seller wait.
    pub(crate) releases: Autocommit,
    /// The process's connection for outcomes, which are looked up one after another: a lost batch has many
    /// members.
    pub(crate) outcomes: Arc<Mutex<SharedConnection>>,
    pub(crate) sealing: Sealing,
}

#[async_trait]
impl IdempotencyClaims for StoredClaims {
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError> {
        let (space, key, fence) = (claim.space.uuid(), claim.key.as_str(), claim.fence);
        let lease = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
        let take = CLAIM.bind((space, key, fence, claim.fingerprint.bytes().as_slice(), lease));
        let taken = of_seller(&self.statements, claim)
            .ask(|leased| async move {
                match take.get_result::<Taken>(&mut leased.connection()).await {
                    // It is in use, or another transaction is about to complete it.
                    Err(error) if error == NotFound || is_lock_timeout(&error) => Ok(None),
                    taken => taken.map(Some),
                }
            })
            .await?;
        let Some(taken) = taken else {
            return self.read(claim).await;
        };
        if taken.0 {
            metrics::counter!("idempotency_takeovers_total").increment(1);
        }
        Ok(Claimed::Run)
    }

    async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        let release = RELEASE.bind((claim.space.uuid(), claim.key.as_str(), claim.fence));
        // No row: the claim is completed, or belongs to another request.
        Autocommit::execute(&of_seller(&self.releases, claim), release).await?;
        Ok(())
    }

    async fn outcome(&self, claim: &Claim) -> Result<Option<StoredResponse>, StoreError> {
        let end = Instant::now() + OUTCOME_TIMEOUT;
        loop {
            match self.lock_and_read(claim, end).await {
                Err(StoreError::Unavailable(_)) if Instant::now() + RETRY_INTERVAL < end => {
                    sleep(RETRY_INTERVAL).await;
                }
                Err(error) => return Err(error),
                Ok(row) if row.fence == claim.fence => {
                    return row.stored_response(claim, &self.sealing);
                }
                // The key can only be taken over after our transaction ended without completing it.
                Ok(_) => return Ok(None),
            }
        }
    }
}

/// In the seller's share: its claims of one key wait for each other, and its releases may be many.
fn of_seller(statements: &Autocommit, claim: &Claim) -> Autocommit {
    match claim.space {
        KeySpace::Seller(seller) => statements.of_seller(seller),
        KeySpace::Operator => statements.clone(),
    }
}

impl StoredClaims {
    /// The state of a key that is in use, without a completion that is not committed.
    async fn read(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        let read = idempotency::table
            .find((claim.space.uuid(), claim.key.as_str()))
            .filter(idempotency::expires_at.gt(api_now()))
            .select(ClaimRow::as_select());
        let row = of_seller(&self.statements, claim).row(read).await?;
        row.map_or(Ok(Claimed::InProgress), |row| row.claimed(claim, &self.sealing))
    }

    /// Waits for the transaction that holds or inserts the key's row, and then reads the row. One that stays
    /// locked fails soon, so that others have their turn. Only the wait for the turn ends at `end`: a look-up
    /// that was dropped would leave its transaction open on the connection.
    async fn lock_and_read(&self, claim: &Claim, end: Instant) -> Result<ClaimRow, StoreError> {
        let (space, key) = (claim.space.uuid(), claim.key.as_str());
        let read = LOCK_KEY.bind((space, key, claim.fence, claim.fingerprint.bytes().as_slice()));
        let timed_out = |_| StoreError::from(AnswerTimeout(OUTCOME_TIMEOUT));
        let connection = timeout_at(end, self.outcomes.lock()).await.map_err(timed_out)?;
        let looking = |open: Arc<OpenConnection>| async move {
            let mut connection = open.connection();
            connection.batch_execute(BEGIN).await?;
            let row = read.get_result::<ClaimRow>(&mut connection).await;
            connection.batch_execute("rollback").await?;
            row
        };
        connection.ask(looking).await
    }
}

/// Completes a claim, as the last statement of the request's transaction: if the row were locked earlier, a
/// repeated request would wait for it.
pub(crate) async fn complete(tx: &Tx, claim: &Claim, answer: &StoredResponse) -> Result<(), StoreError> {
    let status = i16::try_from(answer.status).map_err(StoreError::unexpected)?;
    let body = tx.units.sealing.seal(claim, &answer.body)?;
    let (space, key) = (claim.space.uuid(), claim.key.as_str().to_owned());
    let complete = COMPLETE.bind((space, key, claim.fence, status, body, answer.etag.clone()));
    let completion = checked(complete, |changed| match changed {
        1 => Ok(()),
        _ => Err(StoreError::Conflict {
            constraint: LOST_CLAIM.to_owned(),
        }),
    });
    tx.finish_with(Some(completion)).await
}
