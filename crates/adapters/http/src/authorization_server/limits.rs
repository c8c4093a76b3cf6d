//! Rate limits of the endpoints (contract: Limits), and the subject that a call counts against (D67).

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use oauth::{Application, ClientId, ClientType, Limiter, Subject};
use web::deadline::Deadline;

use super::PresentedKey;
use super::error::OAuthError;
use crate::Public;
use crate::policy::{admits, retry_after};

/// The limit and subject of a call.
pub(super) enum Limit {
    /// `/oauth/token` and `/oauth/revoke`: the caller's address.
    TokenByAddress(IpAddr),
    /// `/oauth/token` and `/oauth/revoke`: the authenticated client.
    TokenByClient(ClientId),
    /// `/oauth/authorize`
    AuthorizeByAddress(IpAddr),
}

/// Counts a call and rejects it beyond its limit per minute; returns the database's time. A call that cannot
/// be counted is rejected.
pub(super) async fn count(
    public: &Public,
    limit: Limit,
    deadline: Deadline,
) -> Result<DateTime<Utc>, OAuthError> {
    let settings = &public.settings;
    let (name, limiter, subject, most) = match limit {
        Limit::TokenByAddress(address) => (
            "token_by_address",
            Limiter::TokenByAddress,
            Subject::address(address),
            settings.token_limit_per_ip,
        ),
        Limit::TokenByClient(client) => (
            "token_by_client",
            Limiter::TokenByClient,
            Subject::client(client),
            settings.token_limit_per_client,
        ),
        Limit::AuthorizeByAddress(address) => (
            "authorize_by_address",
            Limiter::AuthorizeByAddress,
            Subject::address(address),
            settings.authorize_limit_per_ip,
        ),
    };
    let counted = deadline.run(public.rates.count(limiter, subject)).await??;
    let quota = counted.against(most);
    if admits(name, &quota) {
        Ok(quota.counted_at)
    } else {
        Err(OAuthError::too_many(retry_after(&quota)))
    }
}

/// Counts a call against its client. A public client proves its identity only by a credential of its own that
/// can still be used: other calls do not count (D67).
pub(super) async fn count_client(
    public: &Public,
    client: &Application,
    presented: Option<&PresentedKey>,
    deadline: Deadline,
) -> Result<(), OAuthError> {
    if client.client_type == ClientType::Public
        && !proves(public, client.client_id, presented, deadline).await?
    {
        return Ok(());
    }
    count(public, Limit::TokenByClient(client.client_id), deadline).await?;
    Ok(())
}

/// Whether this is a code or refresh token of the client that can still be used.
pub(super) async fn proves(
    public: &Public,
    client_id: ClientId,
    presented: Option<&PresentedKey>,
    deadline: Deadline,
) -> Result<bool, OAuthError> {
    let Some(presented) = presented else {
        return Ok(false);
    };
    let holder = deadline.run(presented.holder(public)).await??;
    Ok(holder.is_some_and(|holder| holder.is_usable && holder.client_id == client_id))
}
