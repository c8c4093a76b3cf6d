//! Applications, within a transaction and outside.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use diesel::{
    ExpressionMethods, NullableExpressionMethods, OptionalExtension, QueryDsl, QueryResult, SelectableHelper,
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, SellerId, StoreError, Version};
use oauth::{
    Application, ApplicationEvent, ApplicationReader, ApplicationStatus, ApplicationStore, ClientId,
};
use usecases::Transaction;

use super::application_row::ApplicationRow;
use crate::{
    batch::{BatchQuery, Batcher},
    connector::Connector,
    error::SharedFailure,
    reads::Reads,
    schema::{api_now, applications, sellers},
    transaction::Tx,
    webhooks::{remove_subscriptions, wake_lanes},
};

/// Reads applications outside a transaction.
pub(crate) struct Applications {
    reads: Reads,
    /// Clients that authenticate at the same time, in one statement.
    clients: Batcher<Clients>,
}

impl Applications {
    pub(crate) fn new(connector: &Arc<Connector>, reads: Reads) -> Self {
        let clients = Batcher::new(Clients, Arc::clone(connector));
        Self { reads, clients }
    }
}

#[async_trait]
impl ApplicationReader for Applications {
    async fn client(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        self.clients.ask(client_id).await
    }

    async fn applications_of(&self, owner: SellerId) -> Result<Vec<Application>, StoreError> {
        let own = applications::table
            .filter(applications::owner_id.eq(owner.uuid()))
            .filter(applications::deleted_at.is_null())
            .filter(diesel::dsl::not(applications::built_in))
            .order((applications::created_at.desc(), applications::client_id.desc()))
            .select(ApplicationRow::as_select());
        let ask = self
            .reads
            .ask(|lent| async move { own.load(&mut lent.connection()).await });
        ask.await?.into_iter().map(Application::try_from).collect()
    }
}

/// Clients of any owners in one statement.
pub(crate) struct Clients;

#[async_trait]
impl BatchQuery for Clients {
    const NAME: &'static str = "applications";
    type Question = ClientId;
    type Answer = Option<Application>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        clients: &[ClientId],
    ) -> QueryResult<Vec<Result<Option<Application>, StoreError>>> {
        let mut ids: Vec<_> = clients.iter().map(|client| client.uuid()).collect();
        ids.sort_unstable();
        ids.dedup();
        let rows = applications::table
            .inner_join(sellers::table)
            .filter(applications::client_id.eq_any(ids))
            .filter(applications::deleted_at.is_null())
            .filter(sellers::closed_at.is_null())
            .select(ApplicationRow::as_select())
            .load(&mut connection)
            .await?;
        // What is wrong with one row is its own callers' failure.
        let found: HashMap<_, _> = rows
            .into_iter()
            .map(|row| {
                (
                    row.client_id(),
                    Application::try_from(row).map_err(SharedFailure::new),
                )
            })
            .collect();
        let answer = |client| match found.get(client) {
            None => Ok(None),
            Some(Ok(application)) => Ok(Some(application.clone())),
            Some(Err(failure)) => Err(failure.for_one()),
        };
        Ok(clients.iter().map(answer).collect())
    }
}

#[async_trait]
impl ApplicationStore for Tx {
    async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let locked = applications::table
            .filter(applications::client_id.eq(client_id.uuid()))
            .filter(applications::deleted_at.is_null())
            .select(ApplicationRow::as_select())
            .for_no_key_update();
        let row = self
            .run(async { locked.get_result(&mut self.connection()).await.optional() })
            .await?;
        row.map(Application::try_from).transpose()
    }

    async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError> {
        let built_in = applications::table
            .filter(applications::owner_id.eq(seller.uuid()))
            .filter(applications::built_in)
            .select(ApplicationRow::as_select());
        let row = self
            .run(async { built_in.get_result(&mut self.connection()).await.optional() })
            .await?;
        row.map(Application::try_from).transpose()
    }

    async fn save_application(
        &self,
        change: Change<Application, ApplicationEvent>,
    ) -> Result<(), StoreError> {
        self.tell(|outbox| {
            for event in &change.events {
                outbox.application(change.after.owner, event, self.now());
            }
        });
        let client_id = change.after.client_id;
        let works = change.after.status != ApplicationStatus::Suspended;
        let row = ApplicationRow::try_from(change.after)?;
        let saved = match change.before {
            Version::Absent => {
                let values = (row, applications::updated_at.eq(api_now()));
                let insert = diesel::insert_into(applications::table).values(values);
                self.run(insert.execute(&mut self.connection())).await?
            }
            Version::Locked => {
                let present = applications::table
                    .filter(applications::client_id.eq(client_id.uuid()))
                    .filter(applications::deleted_at.is_null());
                let update = diesel::update(present).set((row, applications::updated_at.eq(api_now())));
                self.run(update.execute(&mut self.connection())).await?
            }
        };
        if saved != 1 {
            return Err(StoreError::unexpected(format!(
                "application {client_id} was not there to be saved"
            )));
        }
        if works && change.before == Version::Locked {
            wake_lanes(self, client_id).await?;
        }
        Ok(())
    }

    async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError> {
        let present = applications::table
            .filter(applications::client_id.eq(client_id.uuid()))
            .filter(applications::deleted_at.is_null());
        let delete = diesel::update(present).set((
            applications::deleted_at.eq(api_now().nullable()),
            applications::updated_at.eq(api_now()),
        ));
        let deleted = self.run(delete.execute(&mut self.connection())).await? == 1;
        if deleted {
            remove_subscriptions(self, client_id).await?;
        }
        Ok(deleted)
    }
}
