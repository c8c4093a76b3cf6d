//! A store in memory behind the mocks: enough of the ports for requests to build on each other.

mod claims;
mod feed;
mod orders;
mod panel;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use ::orders::{OrderEventKind, OrderId, SellerOrder, ShipmentMail};
use async_trait::async_trait;
use changes::ChangeItem;
use chrono::{DateTime, Utc};
use kernel::{CommitError, OfferId, SellerId, StoreError, Version};
use oauth::{AccountMail, Application, ApplicationReader, ClientId, FamilyId, Link, Seller, SellerReader};
use offers::{Offer, OfferFilter, OfferReader};
use tokio::time::Instant;
use usecases::{MockTransaction, Transaction, UnitOfWork};

/// What is stored.
#[derive(Clone, Default)]
pub(crate) struct Rows {
    pub(crate) sellers: Vec<Seller>,
    pub(crate) passwords: BTreeMap<SellerId, Option<String>>,
    pub(crate) offers: BTreeMap<(SellerId, OfferId), Offer>,
    pub(crate) applications: BTreeMap<ClientId, Application>,
    pub(crate) names: BTreeSet<String>,
    pub(crate) tokens: BTreeMap<FamilyId, SellerId>,
    /// How many offers each transaction has saved.
    pub(crate) saved: Vec<usize>,
    pub(crate) orders: BTreeMap<(OrderId, SellerId), SellerOrder>,
    pub(crate) numbers: BTreeMap<String, OrderId>,
    /// What was announced of orders, and to whom.
    pub(crate) order_events: Vec<(SellerId, OrderEventKind)>,
    pub(crate) mails: Vec<ShipmentMail>,
    pub(crate) links: Vec<Link>,
    pub(crate) account_mails: Vec<AccountMail>,
    /// What was done, to what, in the order of the log.
    pub(crate) notes: Vec<panel::Note>,
    changes: Vec<ChangeItem>,
    looks: Vec<Instant>,
}

/// The store. Clones share their rows.
#[derive(Clone, Default)]
pub(crate) struct Store {
    rows: Arc<Mutex<Rows>>,
    claims: Arc<Mutex<BTreeMap<String, claims::ClaimRow>>>,
    away: Arc<Mutex<bool>>,
    loses_answers: Arc<Mutex<bool>>,
}

/// The `now` of every transaction: 2023-11-14T22:13:20Z.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

impl Store {
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap()
    }

    /// From now on the store cannot be reached.
    pub(crate) fn goes_away(&self) {
        *self.away.lock().unwrap() = true;
    }

    /// From now on commits are made, but their answers are lost.
    pub(crate) fn loses_answers(&self) {
        *self.loses_answers.lock().unwrap() = true;
    }

    fn check(&self) -> Result<(), StoreError> {
        if *self.away.lock().unwrap() {
            return Err(StoreError::Unavailable("connection refused".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl UnitOfWork for Store {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        self.check()?;
        let mine = Arc::new(Mutex::new(self.rows().clone()));
        let mut tx = MockTransaction::new();
        tx.expect_now().returning(now);
        expect_sellers(&mut tx, &mine);
        expect_offers(&mut tx, &mine);
        expect_applications(&mut tx, &mine);
        expect_tokens(&mut tx, &mine);
        orders::expect(&mut tx, &mine);
        panel::expect(&mut tx, &mine);
        let completion = claims::Completion::default();
        claims::expect(&mut tx, self, &completion);
        let all = self.clone();
        tx.expect_commit().returning(move || {
            *all.rows() = mine.lock().unwrap().clone();
            all.completed(&completion);
            if *all.loses_answers.lock().unwrap() {
                return Err(CommitError::Unknown(StoreError::Unavailable("cut off".into())));
            }
            Ok(())
        });
        Ok(Box::new(tx))
    }
}

type Mine = Arc<Mutex<Rows>>;

fn conflict(constraint: &str) -> StoreError {
    StoreError::Conflict {
        constraint: constraint.to_owned(),
    }
}

fn expect_sellers(tx: &mut MockTransaction, mine: &Mine) {
    let rows = Arc::clone(mine);
    tx.expect_add_seller().returning(move |new| {
        let mut rows = rows.lock().unwrap();
        let email = new.email.as_str();
        if rows
            .sellers
            .iter()
            .any(|other| other.email.eq_ignore_ascii_case(email))
        {
            return Err(conflict("sellers_email_key"));
        }
        let seller = Seller {
            id: new.id,
            seller_no: i32::try_from(rows.sellers.len()).unwrap() + 1,
            name: new.name.as_str().to_owned(),
            email: email.to_owned(),
            created_at: new.created_at,
            closed_at: None,
        };
        rows.passwords
            .insert(new.id, new.password.map(|hash| hash.as_str().to_owned()));
        rows.sellers.push(seller.clone());
        Ok(seller)
    });
    let rows = Arc::clone(mine);
    tx.expect_lock_seller().returning(move |id| {
        let rows = rows.lock().unwrap();
        Ok(rows.sellers.iter().find(|seller| seller.id == id).cloned())
    });
    let rows = Arc::clone(mine);
    tx.expect_close_seller().returning(move |id, at| {
        let mut rows = rows.lock().unwrap();
        let seller = rows.sellers.iter_mut().find(|seller| seller.id == id);
        Ok(seller.map(|seller| seller.closed_at.get_or_insert(at)).is_some())
    });
}

fn expect_offers(tx: &mut MockTransaction, mine: &Mine) {
    let rows = Arc::clone(mine);
    tx.expect_lock_offers().returning(move |seller, ids| {
        let rows = rows.lock().unwrap();
        Ok(ids
            .iter()
            .filter_map(|id| rows.offers.get(&(seller, *id)).cloned())
            .collect())
    });
    let rows = Arc::clone(mine);
    tx.expect_save_offers().returning(move |seller, changes| {
        let mut rows = rows.lock().unwrap();
        rows.saved.push(changes.len());
        for change in changes {
            rows.offers.insert((seller, change.after.id), change.after);
        }
        Ok(())
    });
}

fn expect_applications(tx: &mut MockTransaction, mine: &Mine) {
    let rows = Arc::clone(mine);
    tx.expect_lock_application()
        .returning(move |id| Ok(rows.lock().unwrap().applications.get(&id).cloned()));
    let rows = Arc::clone(mine);
    tx.expect_built_in_application().returning(move |seller| {
        let rows = rows.lock().unwrap();
        let mut theirs = rows
            .applications
            .values()
            .filter(|application| application.owner == seller);
        Ok(theirs.find(|application| application.built_in).cloned())
    });
    let rows = Arc::clone(mine);
    tx.expect_save_application().returning(move |change| {
        let mut rows = rows.lock().unwrap();
        let (name, new) = (
            change.after.name.to_ascii_lowercase(),
            change.before == Version::Absent,
        );
        if new && !change.after.built_in && !rows.names.insert(name) {
            return Err(conflict("applications_name_key"));
        }
        rows.applications.insert(change.after.client_id, change.after);
        Ok(())
    });
    let rows = Arc::clone(mine);
    tx.expect_delete_application()
        .returning(move |id| Ok(rows.lock().unwrap().applications.remove(&id).is_some()));
}

fn expect_tokens(tx: &mut MockTransaction, mine: &Mine) {
    let rows = Arc::clone(mine);
    tx.expect_issue_token().returning(move |token| {
        rows.lock()
            .unwrap()
            .tokens
            .insert(token.family, token.grant.seller);
        Ok(())
    });
    tx.expect_add_personal_token().returning(|_, _, _| Ok(()));
    let rows = Arc::clone(mine);
    tx.expect_count_personal_tokens().returning(move |seller, _| {
        let rows = rows.lock().unwrap();
        Ok(rows.tokens.values().filter(|owner| **owner == seller).count())
    });
    let rows = Arc::clone(mine);
    tx.expect_revoke_personal_token()
        .returning(move |seller, family| {
            let mut rows = rows.lock().unwrap();
            let theirs = rows.tokens.get(&family) == Some(&seller);
            Ok(theirs && rows.tokens.remove(&family).is_some())
        });
}

#[async_trait]
impl SellerReader for Store {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        self.check()?;
        Ok(self.rows().sellers.iter().find(|seller| seller.id == id).cloned())
    }

    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError> {
        self.check()?;
        let rows = self.rows();
        let behind = rows.sellers.iter().filter(|seller| seller.seller_no > after);
        Ok(behind.take(limit.into()).cloned().collect())
    }
}

#[async_trait]
impl OfferReader for Store {
    async fn offer(&self, seller: SellerId, id: OfferId) -> Result<Option<Offer>, StoreError> {
        self.check()?;
        Ok(self.rows().offers.get(&(seller, id)).cloned())
    }

    async fn offers(
        &self,
        _: SellerId,
        _: OfferFilter,
        _: Option<kernel::Keyset>,
        _: kernel::PageSize,
    ) -> Result<kernel::Page<Offer>, StoreError> {
        unreachable!("the back office lists no offers")
    }
}

#[async_trait]
impl ApplicationReader for Store {
    async fn client(&self, id: ClientId) -> Result<Option<Application>, StoreError> {
        self.check()?;
        Ok(self.rows().applications.get(&id).cloned())
    }
    async fn applications_of(&self, _: SellerId) -> Result<Vec<Application>, StoreError> {
        unreachable!("the back office lists no applications")
    }
}
