//! Marks of the installation as a whole, such as "this is a sandbox".

use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, sql_types::Bool};
use diesel_async::RunQueryDsl;
use kernel::StoreError;

use crate::{
    database::Database,
    error::Unmigrated,
    schema::{api_now, instance},
    statement::statement,
};

struct IsEmpty;

statement!(IsEmpty => Bool:
    "select not exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace \
       where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'p', 'v', 'm', 'f'))");

impl Database {
    /// True when the database holds no table at all, ours or anybody's.
    pub async fn is_empty(&self) -> Result<bool, StoreError> {
        self.reads("marks")
            .ask(|lent| async move { IsEmpty.get_result(&mut lent.connection()).await })
            .await
    }

    /// The value of a mark; none where there is no place for marks.
    pub async fn mark(&self, key: &str) -> Result<Option<String>, StoreError> {
        let value = instance::table.find(key.to_owned()).select(instance::value);
        let read = self
            .reads("marks")
            .ask(|lent| async move { value.get_result(&mut lent.connection()).await.optional() })
            .await;
        match read {
            Err(StoreError::Unavailable(cause)) if cause.is::<Unmigrated>() => Ok(None),
            read => read,
        }
    }

    /// Sets a mark, over an earlier value too.
    pub async fn set_mark(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let set = diesel::insert_into(instance::table)
            .values((
                instance::key.eq(key.to_owned()),
                instance::value.eq(value.to_owned()),
            ))
            .on_conflict(instance::key)
            .do_update()
            .set((
                instance::value.eq(value.to_owned()),
                instance::set_at.eq(api_now()),
            ));
        let rows = self
            .reads("marks")
            .ask(|lent| async move { set.execute(&mut lent.connection()).await })
            .await?;
        if rows == 1 {
            Ok(())
        } else {
            Err(StoreError::unexpected("the mark was not set"))
        }
    }
}
