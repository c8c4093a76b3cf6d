//! Issuing tokens: of sellers and operators within a transaction, of applications by themselves.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{ApplicationStatus, ClientTokens, FamilyId, FamilyKind, NewClientToken, NewToken, TokenStore};

use super::{
    Database, Link, Stored, TxId,
    locks::{Row, Strength},
    standing::{application, is_open},
    tables::{FamilyRow, TokenRow},
    transaction::Tx,
};

#[async_trait]
impl TokenStore for Tx {
    async fn issue_token(&self, new: NewToken) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            database.at_once(|stored| store(stored, tx, &new));
            Ok(())
        })
        .await
    }

    async fn add_personal_token(
        &self,
        seller: SellerId,
        family: FamilyId,
        name: &str,
    ) -> Result<(), StoreError> {
        let row = (seller, name.to_owned());
        self.run(|database, tx| async move {
            database.at_once(|stored| stored.tables.personal_tokens.put(tx, family, row));
            Ok(())
        })
        .await
    }

    async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError> {
        self.run(|database, tx| async move {
            Ok(database.at_once(|stored| {
                let own = stored.tables.personal_tokens.select(tx, |_, row| row.0 == seller);
                own.iter()
                    .filter(|(family, _)| lives(stored, tx, *family, now))
                    .count()
            }))
        })
        .await
    }

    async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError> {
        self.run(|database, tx| async move {
            database
                .lock(tx, Row::Family(family), Strength::NoKeyUpdate)
                .await?;
            Ok(database.at_once(|stored| {
                let own = stored.tables.personal_tokens.get(tx, &family);
                own.is_some_and(|row| row.0 == seller)
                    && stored
                        .tables
                        .families
                        .change(tx, &family, |row| row.revoked = true)
            }))
        })
        .await
    }
}

fn lives(stored: &Stored, tx: TxId, family: FamilyId, now: DateTime<Utc>) -> bool {
    let revoked = stored
        .tables
        .families
        .get(tx, &family)
        .is_none_or(|row| row.revoked);
    let tokens = stored.tables.access_tokens.select(tx, |key, _| key.0 == family);
    let alive = |row: &TokenRow| !row.revoked && row.expires_at.is_none_or(|end| end > now);
    !revoked && tokens.iter().any(|(_, row)| alive(row))
}

fn store(stored: &mut Stored, tx: TxId, new: &NewToken) {
    let family = FamilyRow {
        seller: new.grant.seller,
        client_id: new.grant.client_id,
        kind: new.kind,
        scopes: new.grant.scopes,
        revoked: false,
        generation: None,
    };
    let token = TokenRow {
        scopes: None,
        expires_at: new.expires_at,
        revoked: false,
    };
    stored.tables.families.put(tx, new.family, family);
    let key = (new.family, *new.hash.bytes());
    stored.tables.access_tokens.put(tx, key, token);
}

#[async_trait]
impl ClientTokens for Link {
    async fn issue(&self, token: NewClientToken) -> Result<bool, StoreError> {
        let database = self.database.clone();
        self.ask(async move { database.alone(|tx| issue(&database, tx, token)).await })
            .await
    }
}

async fn issue(database: &Database, tx: TxId, token: NewClientToken) -> Result<bool, StoreError> {
    let grant = token.grant;
    database
        .lock(tx, Row::Application(grant.client_id), Strength::Share)
        .await?;
    database
        .lock(tx, Row::Seller(grant.seller), Strength::Share)
        .await?;
    let now = database.now();
    Ok(database.at_once(|stored| {
        let found = application(stored, tx, grant.client_id);
        let stands = found.is_some_and(|(owner, status, scopes)| {
            owner == grant.seller
                && status != ApplicationStatus::Suspended
                && grant.scopes.iter().all(|scope| scopes.contains(scope))
        });
        let stands = stands && is_open(stored, tx, grant.seller);
        if stands {
            let new = NewToken {
                family: token.family,
                kind: FamilyKind::ClientCredentials,
                grant,
                hash: token.hash,
                expires_at: Some(now + token.lifetime),
            };
            store(stored, tx, &new);
        }
        stands
    }))
}
