//! Everybody's applications.

use async_trait::async_trait;
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, SelectableHelper, pg::Pg};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use oauth::{Application, ApplicationDirectory, ApplicationFilter, ClientId};
use uuid::Uuid;

use super::application_row::ApplicationRow;
use crate::{
    reads::Reads,
    schema::{applications, lower},
};

/// Each call is one statement.
pub(crate) struct AllApplications(pub(crate) Reads);

#[async_trait]
impl ApplicationDirectory for AllApplications {
    async fn application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        let one = applications::table
            .filter(applications::client_id.eq(client_id.uuid()))
            .filter(applications::deleted_at.is_null())
            .select(ApplicationRow::as_select());
        let ask = self
            .0
            .ask(|lent| async move { one.get_result(&mut lent.connection()).await.optional() });
        ask.await?.map(Application::try_from).transpose()
    }

    async fn application_named(&self, name: &str) -> Result<Option<Application>, StoreError> {
        let one = applications::table
            .filter(lower(applications::name).eq(lower(name.to_owned())))
            .filter(diesel::dsl::not(applications::built_in))
            .filter(applications::deleted_at.is_null())
            .select(ApplicationRow::as_select());
        let ask = self
            .0
            .ask(|lent| async move { one.get_result(&mut lent.connection()).await.optional() });
        ask.await?.map(Application::try_from).transpose()
    }

    async fn applications(
        &self,
        filter: ApplicationFilter,
        before: Option<ClientId>,
        limit: u16,
    ) -> Result<Vec<Application>, StoreError> {
        let before = before.map_or(Uuid::max(), ClientId::uuid);
        // Ids rise with time, so the primary key is the order.
        let mut some = applications::table
            .filter(applications::client_id.lt(before))
            .filter(applications::deleted_at.is_null())
            .filter(diesel::dsl::not(applications::built_in))
            .order(applications::client_id.desc())
            .limit(limit.into())
            .select(ApplicationRow::as_select())
            .into_boxed::<Pg>();
        if let Some(status) = filter.status {
            some = some.filter(applications::status.eq(status.as_str()));
        }
        if let Some(owner) = filter.owner {
            some = some.filter(applications::owner_id.eq(owner.uuid()));
        }
        let rows = self
            .0
            .ask(|lent| async move { some.load(&mut lent.connection()).await })
            .await?;
        rows.into_iter().map(Application::try_from).collect()
    }
}
