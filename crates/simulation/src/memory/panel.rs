//! The audit log and counted deeds, and what of the panel is not kept here: sessions, links, mails about accounts, operators' tokens.
//!
//! The use cases of the panel are not simulated. They fail here with a word about it, and never seem to succeed.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DurationRound, TimeDelta};
use kernel::{SellerId, StoreError};
use oauth::{
    AccountMail, Action, Actor, Count, Limiter, Link, LinkKind, OperatorTokenStore, PanelStore, PasswordHash,
    SecretHash, Seller, Session, Subject,
};
use uuid::Uuid;

use super::{
    locks::{Row, Strength},
    transaction::Tx,
};

/// Something that has no table here.
#[derive(Debug, thiserror::Error)]
#[error("{0} are not kept in memory")]
struct NotKept(&'static str);

pub(super) fn not_kept<T>(what: &'static str) -> Result<T, StoreError> {
    Err(StoreError::unexpected(NotKept(what)))
}

#[async_trait]
impl PanelStore for Tx {
    async fn open_session(&self, _session: Session) -> Result<(), StoreError> {
        not_kept("sessions")
    }

    async fn end_session(&self, _session: SecretHash) -> Result<(), StoreError> {
        not_kept("sessions")
    }

    async fn end_sessions(&self, _seller: SellerId, _but: Option<SecretHash>) -> Result<(), StoreError> {
        not_kept("sessions")
    }

    async fn has_session(&self, _session: SecretHash) -> Result<bool, StoreError> {
        not_kept("sessions")
    }

    async fn present_password(&self, _seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        not_kept("passwords")
    }

    async fn set_password(&self, _seller: SellerId, _password: PasswordHash) -> Result<(), StoreError> {
        not_kept("passwords")
    }

    async fn add_link(&self, _link: Link) -> Result<(), StoreError> {
        not_kept("links")
    }

    async fn use_link(&self, _hash: SecretHash, _kind: LinkKind) -> Result<Option<Seller>, StoreError> {
        not_kept("links")
    }

    async fn queue_account_mail(&self, _mail: AccountMail) -> Result<(), StoreError> {
        not_kept("mails about accounts")
    }

    async fn keep_flash(
        &self,
        _session: SecretHash,
        _form: Uuid,
        _sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        not_kept("sessions")
    }

    async fn take_flash(&self, _session: SecretHash, _form: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        not_kept("sessions")
    }

    async fn count_deed(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        self.run(|database, tx| async move {
            let now = database.now();
            let window = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
            let key = (limiter.code(), subject.uuid(), window);
            database
                .lock(tx, Row::Window(key.0, key.1), Strength::NoKeyUpdate)
                .await?;
            let place = database.at_once(|stored| {
                let windows = &mut stored.tables.windows;
                let place = windows.get(tx, &key).copied().unwrap_or_default() + 1;
                windows.put(tx, key, place);
                place
            });
            Ok(Count {
                place,
                resets_at: window + TimeDelta::minutes(1),
                counted_at: now,
            })
        })
        .await
    }

    async fn note(
        &self,
        actor: Actor,
        _address: Option<IpAddr>,
        action: Action,
        subject: &str,
    ) -> Result<(), StoreError> {
        let row = (actor, action, subject.to_owned());
        self.run(|database, tx| async move {
            let number = database.simulator().number();
            database.at_once(|stored| stored.tables.audit.put(tx, number, row));
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl OperatorTokenStore for Tx {
    async fn add_operator_token(&self, _id: Uuid, _name: &str, _hash: SecretHash) -> Result<(), StoreError> {
        not_kept("operators' tokens")
    }

    async fn revoke_operator_token(&self, _id: Uuid) -> Result<bool, StoreError> {
        not_kept("operators' tokens")
    }
}
