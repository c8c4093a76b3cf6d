//! An application as a row.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use diesel::{AsChangeset, Insertable, Queryable, Selectable, pg::Pg};
use kernel::StoreError;
use oauth::{Application, ApplicationStatus, ClientId, ClientType, Purpose, ScopeSet, SecretHash};
use uuid::Uuid;

use crate::schema::applications;

/// What is stored of an application that has not been deleted.
#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = applications, check_for_backend(Pg), treat_none_as_null = true)]
pub(super) struct ApplicationRow {
    client_id: Uuid,
    owner_id: Uuid,
    name: String,
    description: Option<String>,
    documentation_url: Option<String>,
    purpose: String,
    client_type: String,
    redirect_uris: Vec<String>,
    scopes: i32,
    status: String,
    rate_limit: Option<i32>,
    built_in: bool,
    secret_hash: Option<Vec<u8>>,
    created_at: DateTime<Utc>,
}

impl ApplicationRow {
    pub(super) fn client_id(&self) -> ClientId {
        self.client_id.into()
    }
}

impl TryFrom<ApplicationRow> for Application {
    type Error = StoreError;

    fn try_from(row: ApplicationRow) -> Result<Self, StoreError> {
        let client_id = ClientId::from(row.client_id);
        let corrupt = |reason: String| StoreError::corrupt("applications", client_id, reason);
        let word = |column: &str, word: &str| corrupt(format!("{column} {word:?}"));
        let purpose = Purpose::parse(&row.purpose).ok_or_else(|| word("purpose", &row.purpose))?;
        let client_type =
            ClientType::parse(&row.client_type).ok_or_else(|| word("client_type", &row.client_type))?;
        let status = ApplicationStatus::parse(&row.status).ok_or_else(|| word("status", &row.status))?;
        let scopes = ScopeSet::from_bits(row.scopes).map_err(|unknown| corrupt(unknown.to_string()))?;
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
            purpose,
            client_type,
            redirect_uris: row.redirect_uris,
            scopes,
            status,
            rate_limit: rate_limit.transpose()?,
            built_in: row.built_in,
            secret: secret.map_err(|invalid| corrupt(format!("secret_hash {invalid}")))?,
            created_at: row.created_at,
        })
    }
}

/// A stored limit; nothing where it cannot be one.
pub(crate) fn limit_from(stored: i32) -> Option<NonZeroU32> {
    u32::try_from(stored).ok().and_then(NonZeroU32::new)
}

impl TryFrom<Application> for ApplicationRow {
    type Error = StoreError;

    fn try_from(application: Application) -> Result<Self, StoreError> {
        let rate_limit = application
            .rate_limit
            .map(|limit| i32::try_from(limit.get()))
            .transpose();
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
            status: application.status.as_str().to_owned(),
            rate_limit: rate_limit.map_err(StoreError::unexpected)?,
            built_in: application.built_in,
            secret_hash: application.secret.map(|hash| hash.bytes().to_vec()),
            created_at: application.created_at,
        })
    }
}
