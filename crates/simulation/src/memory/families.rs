//! Families: locking one with what it hangs on, beginning one, and ending them with their connection.

use kernel::{SellerId, StoreError};
use oauth::{
    ClientId, Code, FamiliesOf, Family, FamilyId, FamilyKind, NewConsent, NewPair, RefreshToken, Standing,
};

use super::{
    Database, Stored, TxId,
    locks::{Row, Strength},
    standing::{application, is_connected, is_open},
    subscriptions::end_subscriptions,
    tables::{ConnectionRow, FamilyRow, TokenRow},
};

/// A family with its standing, its row locked, and its connection held.
pub(super) async fn lock_family(
    database: &Database,
    tx: TxId,
    id: FamilyId,
) -> Result<Option<Family>, StoreError> {
    database.lock(tx, Row::Family(id), Strength::NoKeyUpdate).await?;
    let Some(row) = database.at_once(|stored| stored.tables.families.get(tx, &id).copied()) else {
        return Ok(None);
    };
    if row.generation.is_some() {
        database
            .lock(tx, Row::Connection(row.seller, row.client_id), Strength::Share)
            .await?;
    }
    Ok(Some(database.at_once(|stored| Family {
        id,
        seller: row.seller,
        client_id: row.client_id,
        scopes: row.scopes,
        standing: Standing {
            revoked: row.revoked,
            disconnected: !is_connected(stored, tx, (row.seller, row.client_id), row.generation),
            closed: !is_open(stored, tx, row.seller),
            application: application(stored, tx, row.client_id).map(|(_, status, scopes)| (status, scopes)),
        },
    })))
}

/// Opens the connection where there is none or it was ended, and stores the consent under its generation.
pub(super) async fn open_consent(database: &Database, tx: TxId, new: NewConsent) -> Result<(), StoreError> {
    let pair = (new.seller, new.client_id);
    database
        .lock(tx, Row::Connection(pair.0, pair.1), Strength::NoKeyUpdate)
        .await?;
    database.at_once(|stored| {
        let known = stored.tables.connections.get(tx, &pair).copied();
        let generation = known.map_or(1, |known| known.generation);
        stored.tables.connections.put(
            tx,
            pair,
            ConnectionRow {
                generation,
                open: true,
            },
        );
        let family = FamilyRow {
            seller: new.seller,
            client_id: new.client_id,
            kind: FamilyKind::AuthorizationCode,
            scopes: new.scopes,
            revoked: false,
            generation: Some(generation),
        };
        stored.tables.families.put(tx, new.family, family);
        let code = Code {
            redirect_uri: new.redirect_uri,
            challenge: new.challenge,
            expires_at: new.expires_at,
            used_at: None,
        };
        stored.tables.codes.put(tx, (new.family, *new.code.bytes()), code);
    });
    Ok(())
}

/// Stores what a credential gave; one that was used already gives nothing.
pub(super) fn store_pair(
    stored: &mut Stored,
    tx: TxId,
    family: FamilyId,
    pair: &NewPair,
    unused: bool,
) -> Result<(), StoreError> {
    if !unused {
        return Err(StoreError::unexpected(
            "0 rows of access_tokens were saved instead of 1",
        ));
    }
    let access = TokenRow {
        scopes: Some(pair.scopes),
        expires_at: Some(pair.access_expires_at),
        revoked: false,
    };
    let refresh = RefreshToken {
        scopes: pair.scopes,
        expires_at: pair.refresh_expires_at,
        used_at: None,
    };
    stored
        .tables
        .access_tokens
        .put(tx, (family, *pair.access.bytes()), access);
    stored
        .tables
        .refresh_tokens
        .put(tx, (family, *pair.refresh.bytes()), refresh);
    Ok(())
}

pub(super) fn families_of(stored: &Stored, tx: TxId, of: FamiliesOf) -> Vec<FamilyId> {
    let theirs = |row: &FamilyRow| match of {
        FamiliesOf::Application(client_id) => row.client_id == client_id,
        FamiliesOf::Seller(seller) => row.seller == seller,
    };
    let found = stored
        .tables
        .families
        .select(tx, |_, row| theirs(row) && !row.revoked);
    found.into_iter().map(|(id, _)| id).collect()
}

/// Ends a connection: its generation rises, and its subscriptions end.
pub(super) async fn disconnect(
    database: &Database,
    tx: TxId,
    seller: SellerId,
    client_id: ClientId,
) -> Result<bool, StoreError> {
    let pair = (seller, client_id);
    database
        .lock(tx, Row::Connection(seller, client_id), Strength::NoKeyUpdate)
        .await?;
    let ended = database.at_once(|stored| {
        let open = stored
            .tables
            .connections
            .get(tx, &pair)
            .is_some_and(|row| row.open);
        open && stored.tables.connections.change(tx, &pair, |row| {
            row.generation = row.generation.saturating_add(1);
            row.open = false;
        })
    });
    if ended {
        end_subscriptions(database, tx, |row| (row.new.seller, row.new.client_id) == pair).await?;
    }
    Ok(ended)
}
