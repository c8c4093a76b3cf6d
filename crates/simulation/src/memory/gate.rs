//! The gate: each request's token looked up anew, and its application counted.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use kernel::StoreError;
use oauth::{
    Admission, ApplicationStatus, FamilyKind, Gate, Limiter, Principal, Quota, Subject, TokenKey, TokenKind,
};

use super::{
    Database, Flaw, Link, NOBODY, Stored,
    standing::{is_connected, is_open},
    tables::CredentialKey,
};
use crate::executor::lock;

/// The gate of a process.
#[derive(Debug)]
pub struct Admittance {
    link: Link,
    default_limit: NonZeroU32,
    /// What a flawed one remembers.
    seen: Mutex<BTreeMap<CredentialKey, Principal>>,
}

impl Admittance {
    /// The gate, with the limit of applications that have none of their own.
    pub fn new(link: &Link, default_limit: NonZeroU32) -> Self {
        Self {
            link: link.clone(),
            default_limit,
            seen: Mutex::default(),
        }
    }

    async fn ask(
        &self,
        key: CredentialKey,
        known: Option<Principal>,
    ) -> Result<Option<Admission>, StoreError> {
        let (database, default) = (self.link.database.clone(), self.default_limit);
        self.link
            .ask(async move { Ok(admit(&database, key, known, default)) })
            .await
    }
}

#[async_trait]
impl Gate for Admittance {
    async fn admit(&self, token: TokenKey) -> Result<Option<Admission>, StoreError> {
        let key = (token.family, *token.hash.bytes());
        let database = &self.link.database;
        let known = lock(&self.seen)
            .get(&key)
            .cloned()
            .filter(|_| database.has(Flaw::RemembersTokens));
        let mut answer = self.ask(key, known.clone()).await;
        if answer.is_err() && database.has(Flaw::CountsAgain) {
            answer = self.ask(key, known).await;
        }
        if let Ok(Some(admission)) = &answer {
            lock(&self.seen).insert(key, admission.principal.clone());
        }
        answer
    }
}

/// One statement: it looks the token up and counts.
fn admit(
    database: &Database,
    key: CredentialKey,
    known: Option<Principal>,
    default_limit: NonZeroU32,
) -> Option<Admission> {
    let now = database.now();
    let tx = database.begin();
    let admission = database.at_once(|stored| {
        let principal = known.or_else(|| principal(stored, key, now))?;
        let own = stored.tables.applications.get(NOBODY, &principal.client_id);
        let limit = own
            .and_then(|row| row.application.rate_limit)
            .unwrap_or(default_limit);
        let window = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
        let subject = Subject::client(principal.client_id).uuid();
        let key = (Limiter::Api.code(), subject, window);
        let place = stored.tables.windows.get(tx, &key).copied().unwrap_or_default() + 1;
        stored.tables.windows.put(tx, key, place);
        let quota = Quota {
            limit: limit.get(),
            place,
            resets_at: window + TimeDelta::minutes(1),
            counted_at: now,
        };
        Some(Admission { principal, quota })
    });
    database.end(tx, true);
    admission
}

/// Who a token speaks for while everything that it hangs on stands.
fn principal(stored: &Stored, key: CredentialKey, now: DateTime<Utc>) -> Option<Principal> {
    let tables = &stored.tables;
    let token = tables.access_tokens.get(NOBODY, &key)?;
    let family = tables.families.get(NOBODY, &key.0)?;
    let row = tables.applications.get(NOBODY, &family.client_id)?;
    let application = &row.application;
    let seller = tables.sellers.get(NOBODY, &family.seller)?;
    let alive = !token.revoked && !family.revoked && token.expires_at.is_none_or(|end| end > now);
    let stands = !row.deleted
        && application.status != ApplicationStatus::Suspended
        && seller.closed_at.is_none()
        && is_open(stored, NOBODY, application.owner)
        && is_connected(
            stored,
            NOBODY,
            (family.seller, family.client_id),
            family.generation,
        );
    let kind = match family.kind {
        FamilyKind::ClientCredentials | FamilyKind::AuthorizationCode => TokenKind::Access,
        FamilyKind::Personal => TokenKind::Personal,
    };
    (alive && stands).then(|| Principal {
        seller: seller.id,
        seller_no: seller.seller_no,
        client_id: family.client_id,
        app_name: application.name.clone(),
        scopes: token
            .scopes
            .unwrap_or(family.scopes)
            .intersection(application.scopes),
        kind,
        expires_at: token.expires_at,
    })
}
