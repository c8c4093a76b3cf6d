//! Rate limits of the endpoints (contract: Limits), and the subject that a call counts against (D67).

use actix_web::http::header::HeaderValue;
use chrono::{DateTime, Utc};
use oauth::{Application, ClientId, ClientType, Limiter, Subject};
use web::deadline::Deadline;
use web::meters::admits;
use web::request::Request;

use super::PresentedKey;
use super::error::OAuthError;
use crate::Public;

/// Counts a call against its client address; returns the database's time.
pub(super) async fn count_address(public: &Public, request: &Request) -> Result<DateTime<Utc>, OAuthError> {
    let limiter = (Limiter::TokenByAddress, "token_by_address");
    let most = public.settings.token_limit_per_ip;
    // `document` too: nobody navigates here, but a page's script can submit a form.
    let subject = address_subject(request, |_| true);
    count(public, limiter, subject, most, request.deadline()).await
}

/// What a call counts against. Requests made by a web page (Fetch Metadata) count apart, or a visited page could use up
/// the limit of all programs behind the address. A program that sends the header has both limits.
pub(super) fn address_subject(request: &Request, is_by_page: impl FnOnce(&HeaderValue) -> bool) -> Subject {
    if request.headers().get("sec-fetch-dest").is_some_and(is_by_page) {
        Subject::pages_at(request.client)
    } else {
        Subject::address(request.client)
    }
}

/// Counts a call and rejects it beyond so many per minute; returns the database's time. The limiter has the
/// name that metrics show. A call that cannot be counted is rejected.
pub(super) async fn count(
    public: &Public,
    (limiter, name): (Limiter, &'static str),
    subject: Subject,
    most: u32,
    deadline: Deadline,
) -> Result<DateTime<Utc>, OAuthError> {
    let counted = deadline.run(public.rates.count(limiter, subject)).await??;
    let quota = counted.against(most);
    if admits(name, &quota) {
        Ok(quota.counted_at)
    } else {
        Err(OAuthError::too_many(quota.retry_after()))
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
    let limiter = (Limiter::TokenByClient, "token_by_client");
    let most = public.settings.token_limit_per_client;
    count(public, limiter, Subject::client(client.client_id), most, deadline).await?;
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
