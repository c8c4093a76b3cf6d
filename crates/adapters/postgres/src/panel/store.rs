//! Placeholder.

use std::net::IpAddr;

use async_trait::async_trait;
use kernel::{SellerId, StoreError};
use oauth::{
    AccountMail, Action, Actor, Link, LinkKind, PanelStore, PasswordHash, SecretHash, Seller, Session,
};
use uuid::Uuid;

use crate::transaction::Tx;

fn unready<T>() -> Result<T, StoreError> {
    Err(StoreError::unexpected("not there yet"))
}

#[async_trait]
impl PanelStore for Tx {
    async fn open_session(&self, _session: Session) -> Result<(), StoreError> {
        unready()
    }

    async fn end_session(&self, _session: SecretHash) -> Result<(), StoreError> {
        unready()
    }

    async fn end_sessions(&self, _seller: SellerId, _but: Option<SecretHash>) -> Result<(), StoreError> {
        unready()
    }

    async fn set_password(&self, _seller: SellerId, _password: PasswordHash) -> Result<(), StoreError> {
        unready()
    }

    async fn add_link(&self, _link: Link) -> Result<(), StoreError> {
        unready()
    }

    async fn use_link(&self, _hash: SecretHash, _kind: LinkKind) -> Result<Option<Seller>, StoreError> {
        unready()
    }

    async fn queue_account_mail(&self, _mail: AccountMail) -> Result<(), StoreError> {
        unready()
    }

    async fn keep_flash(
        &self,
        _session: SecretHash,
        _form: Uuid,
        _sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        unready()
    }

    async fn take_flash(&self, _session: SecretHash, _form: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        unready()
    }

    async fn note(
        &self,
        _actor: Actor,
        _address: Option<IpAddr>,
        _action: Action,
        _subject: &str,
    ) -> Result<(), StoreError> {
        unready()
    }
}
