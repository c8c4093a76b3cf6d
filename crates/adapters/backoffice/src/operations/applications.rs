//! Applications: registered for a seller, and what the operator does with them.

mod manage;
mod register;

use chrono::{DateTime, Utc};
use oauth::{Application, Scope, ScopeSet};
use serde::Serialize;
use web::timestamps;

pub(crate) use manage::{Accept, Adjust, Delete, Read, Reinstate, Suspend};
pub(crate) use register::Register;

use crate::state::BackOfficeSettings;

/// The largest limit that an operator can set, in requests a minute (D104).
const RATE_LIMIT_MAX: u32 = 10_000_000;

/// An application as the operator sees it. `rate_limit` is the one in force: its own, or the service's default.
#[derive(Serialize)]
struct ApplicationView<'a> {
    client_id: String,
    seller_id: String,
    name: &'a str,
    description: Option<&'a str>,
    documentation_url: Option<&'a str>,
    purpose: &'static str,
    client_type: &'static str,
    redirect_uris: &'a [String],
    scopes: Vec<&'static str>,
    status: &'static str,
    rate_limit: u32,
    #[serde(serialize_with = "timestamps::serialize")]
    created_at: DateTime<Utc>,
}

impl<'a> ApplicationView<'a> {
    fn of(application: &'a Application, settings: &BackOfficeSettings) -> Self {
        Self {
            client_id: application.client_id.to_string(),
            seller_id: application.owner.to_string(),
            name: &application.name,
            description: application.description.as_deref(),
            documentation_url: application.documentation_url.as_deref(),
            purpose: application.purpose.as_str(),
            client_type: application.client_type.as_str(),
            redirect_uris: &application.redirect_uris,
            scopes: names(application.scopes),
            status: application.status.as_str(),
            rate_limit: application
                .rate_limit
                .unwrap_or(settings.default_rate_limit)
                .get(),
            created_at: application.created_at,
        }
    }
}

fn names(scopes: ScopeSet) -> Vec<&'static str> {
    scopes.iter().map(Scope::as_str).collect()
}
