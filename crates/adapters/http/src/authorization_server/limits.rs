//! How often the endpoints may be called (contract: Limits), and against whom a call counts (D67).

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use oauth::{Application, ClientId, Credential, Limiter, Subject};

use super::error::OAuthError;
use crate::Public;
use crate::deadline::Deadline;
use crate::listener::Listener;
use crate::meters::RateDecisions;

/// Counts a call of `/oauth/token` or `/oauth/revoke` against the address that it comes from.
pub(super) async fn token_by_address(
    listener: &Listener,
    address: IpAddr,
    deadline: Deadline,
) -> Result<(), OAuthError> {
    let counted = (Limiter::TokenByAddress, Subject::address(address));
    let limit = listener.public.settings.token_limit_per_ip;
    pass(
        listener,
        counted,
        (limit, &listener.decisions.token_by_address),
        deadline,
    )
    .await
    .map(drop)
}

/// Counts a call of `/oauth/token` or `/oauth/revoke` against the client that it has proved to come from.
pub(super) async fn token_by_client(
    listener: &Listener,
    client: ClientId,
    deadline: Deadline,
) -> Result<(), OAuthError> {
    let counted = (Limiter::TokenByClient, Subject::client(client));
    let limit = listener.public.settings.token_limit_per_client;
    pass(
        listener,
        counted,
        (limit, &listener.decisions.token_by_client),
        deadline,
    )
    .await
    .map(drop)
}

/// Counts a call of `/oauth/authorize`; gives the database's time.
pub(super) async fn authorize_by_address(
    listener: &Listener,
    address: IpAddr,
    deadline: Deadline,
) -> Result<DateTime<Utc>, OAuthError> {
    let counted = (Limiter::AuthorizeByAddress, Subject::address(address));
    let limit = listener.public.settings.authorize_limit_per_ip;
    pass(
        listener,
        counted,
        (limit, &listener.decisions.authorize_by_address),
        deadline,
    )
    .await
}

/// Whether a credential was issued to this client.
pub(super) async fn is_its_own(
    public: &Public,
    client: &Application,
    credential: Option<&Credential>,
    deadline: Deadline,
) -> Result<bool, OAuthError> {
    let Some(credential) = credential else {
        return Ok(false);
    };
    let holder = deadline.hold(public.grants.holder(credential.key())).await??;
    Ok(holder == Some(client.client_id))
}

/// Counts a call and refuses it beyond `limit` a minute. A call that could not be counted does not go on.
async fn pass(
    listener: &Listener,
    (limiter, subject): (Limiter, Subject),
    (limit, decisions): (u32, &RateDecisions),
    deadline: Deadline,
) -> Result<DateTime<Utc>, OAuthError> {
    let quota = deadline
        .hold(listener.public.rates.count(limiter, subject))
        .await??
        .against(limit);
    decisions.count(quota.admits());
    if quota.admits() {
        Ok(quota.counted_at)
    } else {
        Err(OAuthError::rate_limited(&quota))
    }
}
