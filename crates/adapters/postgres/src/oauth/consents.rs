//! Consents and the connections that they create.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{SellerId, StoreError};
use oauth::{
    ClientId, ConnectedApplication, Consent, ConsentId, FamilyKind, GrantReader, Holder, NewConsent,
    ScopeSet, SecretHash, TokenKey, Viewer,
};
use uuid::Uuid;

use super::{CredentialRow, credentials};
use crate::batch::{BatchQuery, Reader};
use crate::follow_ups::FollowUp;
use crate::schema::{api_now, applications, connections, consents};
use crate::statement::statements;
use crate::unit_of_work::{Tx, expect_rows};

statements! {
    "consents.sql";
    ADD_CONSENT: (SqlUuid, SqlUuid, SqlUuid, Text, Integer, Binary, Timestamptz, Text, Text);
    CONNECTIONS: (SqlUuid, Text, Nullable<SqlUuid>, BigInt) -> ConnectionRow;
}

/// Opens the connection, unless it is open, and stores a family under its generation, with the code.
pub(super) async fn add(tx: &Tx, consent: &NewConsent) -> Result<(), StoreError> {
    let add = ADD_CONSENT.bind((
        consent.client_id.uuid(),
        consent.seller.uuid(),
        consent.family.uuid(),
        FamilyKind::AuthorizationCode.as_str(),
        consent.scopes.bits(),
        consent.code.bytes().as_slice(),
        consent.expires_at,
        consent.redirect_uri.as_str(),
        consent.challenge.as_str(),
    ));
    expect_rows("authorization_codes", tx.execute(add).await?, 1)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = consents, check_for_backend(Pg))]
struct ConsentRow {
    seller_id: Uuid,
    session_hash: Vec<u8>,
    expires_at: DateTime<Utc>,
    decided_at: Option<DateTime<Utc>>,
}

/// Locks a consent screen, or creates it. The update changes nothing: it waits for a row that another
/// transaction has locked or is inserting, and then reads its new version.
pub(super) async fn lock(
    tx: &Tx,
    id: ConsentId,
    viewer: Viewer,
    expires_at: DateTime<Utc>,
) -> Result<Consent, StoreError> {
    let lock = diesel::insert_into(consents::table)
        .values((
            consents::id.eq(id.uuid()),
            consents::seller_id.eq(viewer.seller.uuid()),
            consents::session_hash.eq(viewer.session.bytes().as_slice()),
            consents::expires_at.eq(expires_at),
        ))
        .on_conflict(consents::id)
        .do_update()
        .set(consents::seller_id.eq(consents::seller_id))
        .returning(ConsentRow::as_returning());
    let row = tx.row(lock).await?;
    let row = row.ok_or_else(|| StoreError::unexpected("a consent screen was not stored"))?;
    let session = SecretHash::try_from(row.session_hash.as_slice())
        .map_err(|invalid| StoreError::corrupt("consents", id, format!("session_hash {invalid}")))?;
    Ok(Consent {
        id,
        viewer: Viewer {
            session,
            seller: row.seller_id.into(),
        },
        expires_at: row.expires_at,
        decided_at: row.decided_at,
    })
}

/// Ends a connection; false if none is open. Its generation rises: everything issued, or being issued, under
/// the previous one is invalid.
pub(super) async fn disconnect(tx: &Tx, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
    let open = connections::table
        .find((client_id.uuid(), seller.uuid()))
        .filter(connections::disconnected_at.is_null());
    let end = diesel::update(open).set((
        connections::generation.eq(connections::generation + 1),
        connections::disconnected_at.eq(api_now().nullable()),
    ));
    if tx.execute(end).await? == 0 {
        return Ok(false);
    }
    FollowUp::Connection(seller, client_id).queue(tx);
    Ok(true)
}

#[derive(QueryableByName)]
#[diesel(table_name = applications)]
struct ConnectionRow {
    client_id: Uuid,
    name: String,
    owner_id: Uuid,
    #[diesel(sql_type = Text)]
    owner_name: String,
    documentation_url: Option<String>,
    scopes: i32,
    #[diesel(sql_type = Timestamptz)]
    connected_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    used_at: Option<DateTime<Utc>>,
}

impl TryFrom<ConnectionRow> for ConnectedApplication {
    type Error = StoreError;

    fn try_from(row: ConnectionRow) -> Result<Self, StoreError> {
        let client_id = ClientId::from(row.client_id);
        let scopes = ScopeSet::from_bits(row.scopes)
            .map_err(|unknown| StoreError::corrupt("connections", client_id, unknown.to_string()))?;
        Ok(Self {
            client_id,
            name: row.name,
            owner: row.owner_id.into(),
            owner_name: row.owner_name,
            documentation_url: row.documentation_url,
            scopes,
            connected_at: row.connected_at,
            used_at: row.used_at,
        })
    }
}

/// A batch of presented codes and tokens, also of those that are not there.
pub(crate) struct Holders;

#[async_trait]
impl BatchQuery for Holders {
    const NAME: &'static str = "holders";
    type Question = TokenKey;
    type Answer = Option<Holder>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        keys: &[TokenKey],
    ) -> QueryResult<Vec<Result<Option<Holder>, StoreError>>> {
        let mut answers: Vec<_> = keys.iter().map(|_| Ok(None)).collect();
        let rows = credentials(keys).get_results::<CredentialRow>(&mut connection);
        for row in rows.await? {
            let place = usize::try_from(row.n - 1).unwrap_or(usize::MAX);
            let Some(answer) = answers.get_mut(place) else {
                continue;
            };
            let (at, is_access) = (row.at, row.is_access);
            // An invalid row is an error only for its own caller.
            *answer = row.read().map(|(family, credential)| {
                let is_known = credential.is_some() || is_access;
                is_known.then(|| Holder {
                    client_id: family.client_id,
                    seller: family.seller,
                    is_usable: credential.is_some_and(|credential| credential.is_usable(&family, at)),
                })
            });
        }
        Ok(answers)
    }
}

/// Reads grants outside a transaction; look-ups of presented codes and tokens are batched.
#[async_trait]
impl GrantReader for Reader<Holders> {
    async fn holder(&self, key: TokenKey) -> Result<Option<Holder>, StoreError> {
        self.batches.ask(key).await
    }

    async fn connections(
        &self,
        seller: SellerId,
        after: Option<String>,
        limit: u16,
    ) -> Result<Vec<ConnectedApplication>, StoreError> {
        let connections = CONNECTIONS.bind((
            seller.uuid(),
            after.unwrap_or_default(),
            None::<Uuid>,
            i64::from(limit),
        ));
        let rows = self.statements.of_seller(seller).rows(connections).await?;
        rows.into_iter().map(ConnectedApplication::try_from).collect()
    }

    async fn connection(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Option<ConnectedApplication>, StoreError> {
        let connection = CONNECTIONS.bind((seller.uuid(), String::new(), Some(client_id.uuid()), 1_i64));
        let row = self.statements.of_seller(seller).row(connection).await?;
        row.map(ConnectedApplication::try_from).transpose()
    }
}
