//! Links, mails about accounts and the audit log in the store.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    Account, Action, Actor, ClientId, HourlyUsage, Link, PanelReader, PasswordHash, PersonalToken,
    SecretHash, Seller, SignedIn,
};
use usecases::MockTransaction;

use super::{Mine, Store};

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) actor: Actor,
    pub(crate) address: Option<IpAddr>,
    pub(crate) action: Action,
    pub(crate) subject: String,
}

pub(super) fn expect(tx: &mut MockTransaction, mine: &Mine) {
    let rows = Arc::clone(mine);
    tx.expect_add_link().returning(move |link| {
        let mut rows = rows.lock().unwrap();
        let replaced = (link.seller, link.kind);
        rows.links.retain(|other| (other.seller, other.kind) != replaced);
        rows.links.push(link);
        Ok(())
    });
    let rows = Arc::clone(mine);
    tx.expect_queue_account_mail().returning(move |mail| {
        rows.lock().unwrap().account_mails.push(mail);
        Ok(())
    });
    let rows = Arc::clone(mine);
    tx.expect_note()
        .returning(move |actor, address, action, subject| {
            let subject = subject.to_owned();
            rows.lock().unwrap().notes.push(Note {
                actor,
                address,
                action,
                subject,
            });
            Ok(())
        });
}

#[async_trait]
impl PanelReader for Store {
    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        self.check()?;
        let password = self.rows().passwords.get(&seller).cloned().flatten();
        Ok(password.map(PasswordHash::new))
    }

    async fn account(&self, _: &str) -> Result<Option<Account>, StoreError> {
        unreachable!("nobody signs in at the back office")
    }

    async fn signed_in(&self, _: SecretHash) -> Result<Option<SignedIn>, StoreError> {
        unreachable!("nobody signs in at the back office")
    }

    async fn link(&self, _: SecretHash) -> Result<Option<(Link, Seller)>, StoreError> {
        unreachable!("the back office opens no link")
    }

    async fn personal_tokens(&self, _: SellerId) -> Result<Vec<PersonalToken>, StoreError> {
        unreachable!("the back office lists no tokens")
    }

    async fn usage(&self, _: ClientId, _: DateTime<Utc>) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
        unreachable!("the back office shows no usage")
    }
}
