//! Applications, within a transaction and outside of one.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, Precondition, SellerId, StoreError};
use oauth::{
    Application, ApplicationDirectory, ApplicationEvent, ApplicationReader, ApplicationStatus,
    ApplicationStore, ClientId, ClientType, ListedApplication, Purpose, ScopeSet, SecretHash,
};
use usecases::{Announcement, Transaction};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::connection::Connector;
use crate::connection::error::SharedFailure;
use crate::connection::pool::Autocommit;
use crate::follow_ups::{FollowUp, queue_reinstatement};
use crate::sql::{row, sql};
use crate::unit_of_work::{Tx, expect_rows};

/// The columns of [`ApplicationRow`], from the table alias `a`.
macro_rules! application_columns {
    () => {
        "a.client_id, a.owner_id, a.name, a.description, a.documentation_url, a.purpose, a.client_type, a.redirect_uris, \
         a.scopes, a.granted_scopes, a.requested_scopes, a.status, a.rate_limit, a.built_in, a.secret_hash, a.created_at"
    };
}

row! {
    struct ApplicationRow {
        client_id: Uuid,
        owner_id: Uuid,
        name: String,
        description: Option<String>,
        documentation_url: Option<String>,
        purpose: String,
        client_type: String,
        redirect_uris: Vec<String>,
        scopes: i32,
        granted_scopes: Option<i32>,
        requested_scopes: i32,
        status: String,
        rate_limit: Option<i32>,
        built_in: bool,
        secret_hash: Option<Vec<u8>>,
        created_at: DateTime<Utc>,
    }
}

impl TryFrom<ApplicationRow> for Application {
    type Error = StoreError;

    fn try_from(row: ApplicationRow) -> Result<Self, StoreError> {
        let client_id = ClientId::from(row.client_id);
        let corrupt = |reason: String| StoreError::corrupt("applications", client_id, reason);
        let scopes = |bits| ScopeSet::from_bits(bits).map_err(|unknown| corrupt(unknown.to_string()));
        let word = |column: &str, word: &str| corrupt(format!("{column} {word:?}"));
        let rate_limit = row
            .rate_limit
            .map(|limit| limit_from(limit).ok_or_else(|| corrupt(format!("limit {limit}"))));
        let secret = row
            .secret_hash
            .map(|hash| SecretHash::try_from(hash.as_slice()))
            .transpose();
        Ok(Self {
            client_id,
            owner: row.owner_id.into(),
            name: row.name,
            description: row.description,
            documentation_url: row.documentation_url,
            purpose: Purpose::parse(&row.purpose).ok_or_else(|| word("purpose", &row.purpose))?,
            client_type: ClientType::parse(&row.client_type)
                .ok_or_else(|| word("client_type", &row.client_type))?,
            redirect_uris: row.redirect_uris,
            scopes: scopes(row.scopes)?,
            granted: row.granted_scopes.map(scopes).transpose()?,
            requested: scopes(row.requested_scopes)?,
            status: ApplicationStatus::parse(&row.status).ok_or_else(|| word("status", &row.status))?,
            rate_limit: rate_limit.transpose()?,
            built_in: row.built_in,
            secret: secret.map_err(|invalid| corrupt(format!("secret_hash {invalid}")))?,
            created_at: row.created_at,
        })
    }
}

/// A stored limit; None if it is invalid.
pub(crate) fn limit_from(stored: i32) -> Option<NonZeroU32> {
    u32::try_from(stored).ok().and_then(NonZeroU32::new)
}

fn applications(rows: Vec<ApplicationRow>) -> Result<Vec<Application>, StoreError> {
    rows.into_iter().map(Application::try_from).collect()
}

fn application(row: Option<ApplicationRow>) -> Result<Option<Application>, StoreError> {
    row.map(Application::try_from).transpose()
}

/// Reads applications outside a transaction.
pub(crate) struct Applications {
    statements: Autocommit,
    /// Look-ups of authenticating clients, batched into one statement.
    clients: Batcher<Clients>,
}

impl Applications {
    pub(crate) fn new(connector: &Arc<Connector>, statements: Autocommit) -> Self {
        let clients = Batcher::new(Clients, Arc::clone(connector));
        Self { statements, clients }
    }
}

#[async_trait]
impl ApplicationReader for Applications {
    async fn client(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let found = self.clients.ask(client_id).await?;
        Ok(found.and_then(|(application, is_closed)| (!is_closed).then_some(application)))
    }

    async fn closed_client(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let found = self.clients.ask(client_id).await?;
        Ok(found.and_then(|(application, is_closed)| is_closed.then_some(application)))
    }

    /// Ids rise with time.
    async fn applications_of(
        &self,
        owner: SellerId,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<Application>, StoreError> {
        let before = before.map_or(Uuid::max(), ClientId::uuid);
        let own = sql!(ApplicationRow: concat!("select ", application_columns!(),
            " from applications a where a.deleted_at is null and not a.built_in and a.owner_id = "), owner.uuid(), " and a.client_id < ", before, " order by a.client_id desc limit ", i64::from(limit), "");
        applications(self.statements.rows(own).await?)
    }
}

/// A batch of clients of any owners, each with whether its owner's account is closed.
pub(crate) struct Clients;

#[async_trait]
impl BatchQuery for Clients {
    const NAME: &'static str = "applications";
    type Question = ClientId;
    type Answer = Option<(Application, bool)>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        clients: &[ClientId],
    ) -> QueryResult<Vec<Result<Self::Answer, StoreError>>> {
        let mut ids: Vec<_> = clients.iter().map(|client| client.uuid()).collect();
        ids.sort_unstable();
        ids.dedup();
        let rows = sql!((ApplicationRow, bool): concat!("select ", application_columns!(),
            ", s.closed_at is not null from applications a join sellers s on s.id = a.owner_id \
              where a.deleted_at is null and a.client_id = any("), ids, ")")
        .get_results::<(ApplicationRow, bool)>(&mut connection)
        .await?;
        // An invalid row is an error only for its own callers.
        let read = |(row, is_closed): (ApplicationRow, bool)| {
            let (client_id, read) = (ClientId::from(row.client_id), Application::try_from(row));
            let read = read.map(|application| (application, is_closed));
            (client_id, read.map_err(SharedFailure::new))
        };
        let found: HashMap<_, _> = rows.into_iter().map(read).collect();
        let answer = |client| match found.get(client) {
            None => Ok(None),
            Some(Ok(found)) => Ok(Some(found.clone())),
            Some(Err(failure)) => Err(failure.for_one()),
        };
        Ok(clients.iter().map(answer).collect())
    }
}

/// Applications of all owners. Each call is one statement.
#[async_trait]
impl ApplicationDirectory for Autocommit {
    async fn application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let one = sql!(ApplicationRow: concat!("select ", application_columns!(),
            " from applications a where a.deleted_at is null and a.client_id = "), client_id.uuid(), "");
        application(self.row(one).await?)
    }

    async fn application_named(&self, name: &str) -> Result<Option<Application>, StoreError> {
        let one = sql!(ApplicationRow: concat!("select ", application_columns!(),
            " from applications a where a.deleted_at is null and not a.built_in and lower(a.name) = lower("), name, ")");
        application(self.row(one).await?)
    }

    /// Each half is a range of its own index.
    async fn applications_at(
        &self,
        seller: SellerId,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<ListedApplication>, StoreError> {
        let (before, limit) = (before.map_or(Uuid::max(), ClientId::uuid), i64::from(limit));
        let some = sql!((ApplicationRow, Option<DateTime<Utc>>):
            "with own as (select client_id from applications where owner_id = ", seller.uuid(),
            " and deleted_at is null and not built_in and client_id < ", before, " order by client_id desc limit ", limit,
            "), connected as (select c.client_id, c.connected_at from connections c join applications a on a.client_id = c.client_id \
               where c.seller_id = ", seller.uuid(), " and c.disconnected_at is null and a.deleted_at is null and c.client_id < ", before,
            " order by c.client_id desc limit ", limit,
            concat!("), listed as (select client_id from own union select client_id from connected) \
             select ", application_columns!(), ", c.connected_at from listed l join applications a on a.client_id = l.client_id \
               left join connected c on c.client_id = l.client_id order by a.client_id desc limit "), limit, "");
        let rows = self.rows(some).await?.into_iter();
        let listed = |(row, connected_at): (ApplicationRow, _)| {
            let application = row.try_into()?;
            Ok(ListedApplication {
                application,
                connected_at,
            })
        };
        rows.map(listed).collect()
    }
}

#[async_trait]
impl ApplicationStore for Tx {
    async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let lock = sql!(ApplicationRow: concat!("select ", application_columns!(),
            " from applications a where a.deleted_at is null and a.client_id = "), client_id.uuid(), " for no key update");
        application(self.row(lock).await?)
    }

    async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError> {
        let built_in = sql!(ApplicationRow: concat!("select ", application_columns!(),
            " from applications a where a.built_in and a.owner_id = "), seller.uuid(), "");
        application(self.row(built_in).await?)
    }

    async fn count_applications(&self, owner: SellerId) -> Result<usize, StoreError> {
        let count = self.row(
            sql!(i64: "select count(*) from applications where deleted_at is null and not built_in \
            and owner_id = ", owner.uuid(), ""),
        );
        usize::try_from(count.await?.unwrap_or_default()).map_err(StoreError::unexpected)
    }

    async fn save_application(
        &self,
        change: Change<Application, ApplicationEvent>,
    ) -> Result<(), StoreError> {
        let Change {
            precondition,
            after,
            events,
        } = change;
        for event in &events {
            let announced = Announcement::of_application(after.owner, event, self.now());
            self.outbox().add(announced);
        }
        let client = after.client_id.uuid();
        let rate_limit = after
            .rate_limit
            .map(|limit| i32::try_from(limit.get()))
            .transpose();
        let rate_limit = rate_limit.map_err(StoreError::unexpected)?;
        let (purpose, client_type) = (after.purpose.as_str(), after.client_type.as_str());
        let (scopes, status) = (after.scopes.bits(), after.status.as_str());
        let (granted, requested) = (after.granted.map(ScopeSet::bits), after.requested.bits());
        let secret = after.secret.as_ref().map(|hash| hash.bytes().as_slice());
        if after.status != ApplicationStatus::Suspended {
            queue_reinstatement(self, after.client_id);
        }
        let saved = match precondition {
            Precondition::MustNotExist => {
                // The name of a deleted application that no other seller saw is free: that row takes one that nobody can register.
                self.execute(sql!((): "update applications set name = '#' || replace(client_id::text, '-', '') \
                    where lower(name) = lower(", after.name.as_str(), ") and not built_in and deleted_at is not null \
                      and (purpose = 'own_use' or status = 'pending')"))
                    .await?;
                self.execute(sql!((): "insert into applications (client_id, owner_id, name, description, documentation_url, \
                    purpose, client_type, redirect_uris, scopes, granted_scopes, requested_scopes, status, rate_limit, built_in, \
                    secret_hash, created_at, updated_at) values (", client, ", ", after.owner.uuid(), ", ", after.name, ", ", after.description, ", ",
                    after.documentation_url, ", ", purpose, ", ", client_type, ", ", after.redirect_uris, ", ", scopes, ", ",
                    granted, ", ", requested, ", ", status, ", ", rate_limit, ", ", after.built_in, ", ", secret, ", ", after.created_at, ", api_now())"))
                    .await?
            }
            Precondition::Unchanged => {
                self.execute(sql!((): "update applications set owner_id = ", after.owner.uuid(), ", name = ", after.name,
                    ", description = ", after.description, ", documentation_url = ", after.documentation_url,
                    ", purpose = ", purpose, ", client_type = ", client_type, ", redirect_uris = ", after.redirect_uris,
                    ", scopes = ", scopes, ", granted_scopes = ", granted, ", requested_scopes = ", requested, ", status = ", status, ", rate_limit = ", rate_limit, ", built_in = ",
                    after.built_in, ", secret_hash = ", secret, ", created_at = ", after.created_at,
                    ", updated_at = api_now() where deleted_at is null and client_id = ", client, ""))
                    .await?
            }
        };
        expect_rows("applications", saved, 1)
    }

    async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError> {
        let delete = sql!((): "update applications set deleted_at = api_now(), updated_at = api_now(), description = null, \
              redirect_uris = '{}' where deleted_at is null and client_id = ", client_id.uuid(), "");
        let deleted = self.execute(delete).await? == 1;
        if deleted {
            FollowUp::Application(client_id).queue(self);
        }
        Ok(deleted)
    }
}
