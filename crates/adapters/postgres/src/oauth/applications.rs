//! Applications, within a transaction and outside of one.

use std::{collections::HashMap, num::NonZeroU32};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::dsl::{AsSelect, not};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, Precondition, SellerId, StoreError};
use oauth::{
    Application, ApplicationDirectory, ApplicationReader, ApplicationStatus, ApplicationStore, ClientId,
    ClientType, InvalidClient, ListedApplication, Purpose, ScopeSet, SecretHash,
};
use usecases::Announcement;
use uuid::Uuid;

use crate::batch::{BatchQuery, Reads};
use crate::connection::pool::Autocommit;
use crate::follow_ups::{self, queue_reinstatement};
use crate::schema::{api_now, applications, sellers};
use crate::statement::statements;
use crate::unit_of_work::{Tx, expect_rows};

statements! {
    "applications.sql";
    APPLICATIONS_AT: (SqlUuid, SqlUuid, BigInt) -> ListedRow;
    FREE_NAME: (Text);
}

diesel::define_sql_function! {
    fn lower(text: Text) -> Text;
}

#[derive(Queryable, Selectable, QueryableByName, Insertable, AsChangeset)]
#[diesel(table_name = applications, primary_key(client_id), check_for_backend(Pg))]
#[diesel(treat_none_as_default_value = false, treat_none_as_null = true)]
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
    #[diesel(skip_update)]
    created_at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct ListedRow {
    #[diesel(embed)]
    application: ApplicationRow,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    connected_at: Option<DateTime<Utc>>,
}

impl TryFrom<Application> for ApplicationRow {
    type Error = StoreError;

    fn try_from(application: Application) -> Result<Self, StoreError> {
        let rate_limit = application.rate_limit.map(|limit| i32::try_from(limit.get()));
        Ok(Self {
            client_id: application.client_id.uuid(),
            owner_id: application.owner.uuid(),
            name: application.name,
            description: application.description,
            documentation_url: application.documentation_url,
            purpose: application.purpose.as_str().to_owned(),
            client_type: application.client_type.as_str().to_owned(),
            redirect_uris: application.redirect_uris,
            scopes: application.scopes.bits(),
            granted_scopes: application.granted.map(ScopeSet::bits),
            requested_scopes: application.requested.bits(),
            status: application.status.as_str().to_owned(),
            rate_limit: rate_limit.transpose().map_err(StoreError::unexpected)?,
            built_in: application.built_in,
            secret_hash: application.secret.map(|hash| hash.bytes().to_vec()),
            created_at: application.created_at,
        })
    }
}

impl TryFrom<ApplicationRow> for Application {
    type Error = StoreError;

    fn try_from(row: ApplicationRow) -> Result<Self, StoreError> {
        let client_id = ClientId::from(row.client_id);
        let corrupt = |reason: String| StoreError::corrupt("applications", client_id, reason);
        let scopes = |bits| ScopeSet::from_bits(bits).map_err(|unknown| corrupt(unknown.to_string()));
        let word = |column: &str, word: &str| corrupt(format!("{column} {word:?}"));
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
            rate_limit: rate_limit(client_id, row.rate_limit)?,
            built_in: row.built_in,
            secret: secret.map_err(|invalid| corrupt(format!("secret_hash {invalid}")))?,
            created_at: row.created_at,
        })
    }
}

/// An application's own limit, if it has one.
pub(crate) fn rate_limit(client_id: ClientId, stored: Option<i32>) -> Result<Option<NonZeroU32>, StoreError> {
    let limit = stored.map(|limit| {
        let valid = u32::try_from(limit).ok().and_then(NonZeroU32::new);
        valid.ok_or_else(|| StoreError::corrupt("applications", client_id, format!("rate_limit {limit}")))
    });
    limit.transpose()
}

/// The applications that were not deleted.
#[diesel::dsl::auto_type(no_type_alias)]
fn kept() -> _ {
    let row: AsSelect<ApplicationRow, Pg> = ApplicationRow::as_select();
    applications::table
        .filter(applications::deleted_at.is_null())
        .select(row)
}

fn application(row: Option<ApplicationRow>) -> Result<Option<Application>, StoreError> {
    row.map(Application::try_from).transpose()
}

/// Reads applications outside a transaction; look-ups of authenticating clients are batched.
#[async_trait]
impl ApplicationReader for Reads<Clients> {
    async fn client(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let known = self.known_client(client_id).await?;
        Ok(known.and_then(|(application, refusal)| refusal.is_none().then_some(application)))
    }

    async fn known_client(
        &self,
        client_id: ClientId,
    ) -> Result<Option<(Application, Option<InvalidClient>)>, StoreError> {
        self.batches.ask(client_id).await
    }

    /// Ids rise with time.
    async fn applications_of(
        &self,
        owner: SellerId,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<Application>, StoreError> {
        let before = before.map_or(Uuid::max(), ClientId::uuid);
        let own = kept()
            .filter(not(applications::built_in))
            .filter(applications::owner_id.eq(owner.uuid()))
            .filter(applications::client_id.lt(before))
            .order(applications::client_id.desc())
            .limit(i64::from(limit));
        let rows = self.statements.of_seller(owner).rows(own).await?;
        rows.into_iter().map(Application::try_from).collect()
    }
}

/// A batch of clients of any owners, deleted ones too.
pub(crate) struct Clients;

#[async_trait]
impl BatchQuery for Clients {
    const NAME: &'static str = "applications";
    type Question = ClientId;
    type Answer = Option<(Application, Option<InvalidClient>)>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        clients: &[ClientId],
    ) -> QueryResult<Vec<Result<Self::Answer, StoreError>>> {
        let ids: Vec<_> = clients.iter().map(|client| client.uuid()).collect();
        let found = applications::table
            .inner_join(sellers::table.on(sellers::id.eq(applications::owner_id)))
            .filter(applications::client_id.eq_any(ids))
            .select((
                ApplicationRow::as_select(),
                applications::deleted_at.is_not_null(),
                sellers::closed_at.is_not_null(),
            ));
        let rows = found
            .get_results::<(ApplicationRow, bool, bool)>(&mut connection)
            .await?;
        // An invalid row is an error only for its own callers.
        let read = |(row, is_deleted, is_closed): (ApplicationRow, bool, bool)| {
            let (client_id, read) = (ClientId::from(row.client_id), Application::try_from(row));
            let refusal = match (is_deleted, is_closed) {
                (true, _) => Some(InvalidClient::Deleted),
                (false, true) => Some(InvalidClient::Closed),
                (false, false) => None,
            };
            (client_id, read.map(|application| (application, refusal)))
        };
        let found: HashMap<_, _> = rows.into_iter().map(read).collect();
        let answer = |client| found.get(client).cloned().transpose();
        Ok(clients.iter().map(answer).collect())
    }
}

/// Applications of all owners. Each call is one statement.
#[async_trait]
impl ApplicationDirectory for Autocommit {
    async fn application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let one = kept().filter(applications::client_id.eq(client_id.uuid()));
        application(self.row(one).await?)
    }

    async fn application_named(&self, name: &str) -> Result<Option<Application>, StoreError> {
        let one = kept()
            .filter(not(applications::built_in))
            .filter(lower(applications::name).eq(lower(name)));
        application(self.row(one).await?)
    }

    async fn applications_at(
        &self,
        seller: SellerId,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<ListedApplication>, StoreError> {
        let before = before.map_or(Uuid::max(), ClientId::uuid);
        let listed = APPLICATIONS_AT.bind((seller.uuid(), before, i64::from(limit)));
        let rows = self.rows(listed).await?.into_iter();
        let listed = |row: ListedRow| {
            Ok(ListedApplication {
                application: row.application.try_into()?,
                connected_at: row.connected_at,
            })
        };
        rows.map(listed).collect()
    }
}

#[async_trait]
impl ApplicationStore<Announcement> for Tx {
    async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let lock = kept()
            .filter(applications::client_id.eq(client_id.uuid()))
            .for_no_key_update();
        application(self.row(lock).await?)
    }

    async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError> {
        let built_in = applications::table
            .filter(applications::built_in)
            .filter(applications::owner_id.eq(seller.uuid()))
            .select(ApplicationRow::as_select());
        application(self.row(built_in).await?)
    }

    async fn count_applications(&self, owner: SellerId) -> Result<usize, StoreError> {
        let own = kept()
            .filter(not(applications::built_in))
            .filter(applications::owner_id.eq(owner.uuid()))
            .count();
        let count = self.run(async { own.get_result::<i64>(&mut self.connection()).await });
        usize::try_from(count.await?).map_err(StoreError::unexpected)
    }

    async fn save_application(&self, change: Change<Application, Announcement>) -> Result<(), StoreError> {
        let Change {
            precondition,
            after,
            events,
        } = change;
        self.outbox().extend(events);
        if after.status != ApplicationStatus::Suspended {
            queue_reinstatement(self, after.client_id);
        }
        let row = ApplicationRow::try_from(after)?;
        let updated_at = applications::updated_at.eq(api_now());
        let saved = match precondition {
            Precondition::MustNotExist => {
                self.execute(FREE_NAME.bind((row.name.as_str(),))).await?;
                self.execute(diesel::insert_into(applications::table).values((row, updated_at)))
                    .await?
            }
            Precondition::Unchanged => {
                let kept = applications::table
                    .find(row.client_id)
                    .filter(applications::deleted_at.is_null());
                self.execute(diesel::update(kept).set((row, updated_at))).await?
            }
        };
        expect_rows("applications", saved, 1)
    }

    async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError> {
        let kept = applications::table
            .find(client_id.uuid())
            .filter(applications::deleted_at.is_null());
        let delete = diesel::update(kept).set((
            applications::deleted_at.eq(api_now().nullable()),
            applications::updated_at.eq(api_now()),
            applications::description.eq(None::<String>),
            applications::redirect_uris.eq(Vec::<String>::new()),
        ));
        let deleted = self.execute(delete).await? == 1;
        if deleted {
            follow_ups::queue(self, None, Some(client_id));
        }
        Ok(deleted)
    }
}
