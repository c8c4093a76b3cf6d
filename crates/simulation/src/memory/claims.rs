//! Claims on idempotency keys.

use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use kernel::{Claim, Claimed, IdempotencyClaims, IdempotencyCompletion, LOST_CLAIM, Remembered, StoreError};
use uuid::Uuid;

use super::{
    Database, Flaw, Link, TxId,
    locks::{Row, Strength},
    tables::ClaimRow,
    transaction::Tx,
};
use crate::Met;

/// How long a claim waits for a row that is locked.
const PATIENCE: TimeDelta = TimeDelta::milliseconds(300);
/// How long a row is waited for whose transaction's outcome is looked for: longer than any transaction lasts.
const OUTCOME_WITHIN: TimeDelta = TimeDelta::seconds(15);
/// How often an outcome is asked for that nobody tells.
const QUESTIONS: usize = 4;
/// How long an answer is remembered.
const REMEMBERED: TimeDelta = TimeDelta::hours(24);

#[async_trait]
impl IdempotencyClaims for Link {
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError> {
        let (database, claim) = (self.database.clone(), claim.clone());
        let lease = TimeDelta::from_std(lease).map_err(StoreError::unexpected)?;
        self.ask(async move { database.alone(|tx| take(&database, tx, &claim, lease)).await })
            .await
    }

    async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        let (database, claim) = (self.database.clone(), claim.clone());
        self.ask(async move { database.alone(|tx| give_back(&database, tx, &claim)).await })
            .await
    }

    async fn outcome(&self, claim: &Claim) -> Result<Option<Remembered>, StoreError> {
        let mut questions = 1;
        loop {
            let (database, claim) = (self.database.clone(), claim.clone());
            let asked = async move { database.alone(|tx| settled(&database, tx, &claim)).await };
            match self.ask(asked).await {
                Err(StoreError::Unavailable(_)) if questions < QUESTIONS => questions += 1,
                Err(error) => return Err(error),
                Ok(answer) => {
                    let met = answer.as_ref().map_or(Met::OutcomeUndone, |_| Met::OutcomeDone);
                    self.simulator().count(met);
                    return Ok(answer);
                }
            }
        }
    }
}

/// Claims a key that nobody has, or whose time has run out; tells whose it is otherwise.
async fn take(database: &Database, tx: TxId, claim: &Claim, lease: TimeDelta) -> Result<Claimed, StoreError> {
    if !database
        .lock_within(tx, row(claim), Strength::NoKeyUpdate, PATIENCE)
        .await?
    {
        // Somebody is about to complete it.
        return Ok(Claimed::InProgress);
    }
    let now = database.now();
    database.at_once(|stored| {
        let claims = &mut stored.tables.claims;
        match claims.get(tx, &key(claim)) {
            Some(other) if other.expires_at > now && other.fence != claim.fence => Ok(standing(other, claim)),
            other => {
                if other.is_some_and(|other| other.fence != claim.fence && other.answer.is_none()) {
                    database.simulator().count(Met::ClaimTakenOver);
                }
                let taken = ClaimRow {
                    fence: claim.fence,
                    fingerprint: *claim.fingerprint.bytes(),
                    answer: None,
                    expires_at: now + lease,
                };
                claims.put(tx, key(claim), taken);
                Ok(Claimed::Run)
            }
        }
    })
}

fn standing(other: &ClaimRow, claim: &Claim) -> Claimed {
    match &other.answer {
        _ if other.fingerprint != *claim.fingerprint.bytes() => Claimed::Reused,
        None => Claimed::InProgress,
        Some(answer) => Claimed::Completed(answer.clone()),
    }
}

async fn give_back(database: &Database, tx: TxId, claim: &Claim) -> Result<(), StoreError> {
    database.lock(tx, row(claim), Strength::Update).await?;
    database.at_once(|stored| {
        let claims = &mut stored.tables.claims;
        let own = claims.get(tx, &key(claim));
        if own.is_some_and(|own| own.fence == claim.fence && own.answer.is_none()) {
            claims.remove(tx, &key(claim));
        }
    });
    Ok(())
}

async fn settled(database: &Database, tx: TxId, claim: &Claim) -> Result<Option<Remembered>, StoreError> {
    database
        .lock_within(tx, row(claim), Strength::Update, OUTCOME_WITHIN)
        .await?;
    Ok(database.at_once(|stored| {
        let own = stored.tables.claims.get(tx, &key(claim));
        own.filter(|own| own.fence == claim.fence)?.answer.clone()
    }))
}

#[async_trait]
impl IdempotencyCompletion for Tx {
    async fn complete(&self, claim: &Claim, answer: &Remembered) -> Result<(), StoreError> {
        self.tell_now().await?;
        let (claim, answer) = (claim.clone(), answer.clone());
        self.run(|database, tx| async move {
            if database.has(Flaw::RemembersApart) {
                return database
                    .alone(|apart| remember(&database, apart, &claim, answer))
                    .await;
            }
            remember(&database, tx, &claim, answer).await
        })
        .await
    }
}

async fn remember(
    database: &Database,
    tx: TxId,
    claim: &Claim,
    answer: Remembered,
) -> Result<(), StoreError> {
    database.lock(tx, row(claim), Strength::NoKeyUpdate).await?;
    let forgetful = database.has(Flaw::ForgetsFence);
    let expires_at = database.now() + REMEMBERED;
    let is_ours = |held: &ClaimRow| forgetful || (held.fence == claim.fence && held.answer.is_none());
    let done = database.at_once(|stored| {
        let claims = &mut stored.tables.claims;
        let ours = claims.get(tx, &key(claim)).is_some_and(is_ours);
        ours && claims.change(tx, &key(claim), |held| {
            held.answer = Some(answer);
            held.expires_at = expires_at;
        })
    });
    if done {
        Ok(())
    } else {
        database.simulator().count(Met::ClaimLost);
        Err(StoreError::Conflict {
            constraint: LOST_CLAIM.to_owned(),
        })
    }
}

fn key(claim: &Claim) -> (Uuid, String) {
    (claim.space.uuid(), claim.key.as_str().to_owned())
}

fn row(claim: &Claim) -> Row {
    let (space, key) = key(claim);
    Row::Claim(space, key)
}
