//! One request per statement: for a distributed PostgreSQL, which sends each statement to the one node that has its rows.
//! Tokens lie by family and windows by application, so look-up and count are two statements here.

use std::{num::NonZeroU32, sync::Arc};

use diesel::sql_types::{Binary, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use oauth::{Admission, Limiter, Subject, TokenKey};
use uuid::Uuid;

use super::row::{LiveColumns, LiveRow, live_columns, live_condition};
use crate::{
    accounts::{CountOne, Counted, count},
    connector::Connector,
    line::Line,
    statement::statement,
};

/// Looks up one token.
struct LookUp {
    family: Uuid,
    hash: Vec<u8>,
}

statement!(LookUp => LiveColumns:
    concat!("with clock as materialized (select api_now() as at) select ", live_columns!(),
        " from clock cross join access_tokens t join families f on f.id = t.family_id \
         join applications a on a.client_id = f.client_id join sellers s on s.id = f.seller_id where t.family_id = "),
    family: SqlUuid, " and t.hash = ", hash: Binary, concat!(" and ", live_condition!()));

pub(crate) struct Router {
    line: Line,
    default_limit: NonZeroU32,
}

impl Router {
    pub(super) fn new(connector: Arc<Connector>, default_limit: NonZeroU32) -> Self {
        Self {
            line: Line::new(connector, "gate"),
            default_limit,
        }
    }

    pub(super) async fn admit(&self, token: TokenKey) -> Result<Option<Admission>, StoreError> {
        let look_up = LookUp {
            family: token.family.uuid(),
            hash: token.hash.bytes().to_vec(),
        };
        let ask = self
            .line
            .ask(|link| async move { look_up.get_results::<LiveRow>(&mut link.connection()).await });
        let Some(row) = ask.await?.pop() else {
            return Ok(None);
        };
        let caller = row.caller(token.family, self.default_limit)?;
        let one = CountOne::new(Limiter::Api, Subject::client(caller.principal.client_id));
        let ask = self
            .line
            .ask(|link| async move { one.get_result::<Counted>(&mut link.connection()).await });
        let quota = count(ask.await?)?.against(caller.limit);
        Ok(Some(Admission {
            principal: caller.principal,
            quota,
        }))
    }
}
