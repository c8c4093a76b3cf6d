//! `POST /oauth/revoke` (RFC 7009)

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use oauth::ClientId;
use usecases::revoke_tokens::{PresentedToken, revoke_own};
use usecases::{LockSet, Row, retry};
use web::deadline::Deadline;
use web::request::Request;
use web::{Error, response};

use super::client::{self, Parameters};
use super::error::OAuthError;
use super::limits::{count_address, count_client};
use super::token::required;
use super::{PresentedKey, record_holder};
use crate::Public;

/// Revokes a token of the client. The checks follow the order of the token endpoint, and the two endpoints
/// share their limits (D79).
pub(super) async fn revoke(public: &Arc<Public>, request: &mut Request) -> Result<HttpResponse, OAuthError> {
    count_address(public, request).await?;

    let parameters = Parameters::read(request, &public.ports.service).await?;
    let deadline = request.deadline();

    let token = parameters.get("token").and_then(PresentedToken::parse);
    let key = token.map(|token| PresentedKey::new(token.key()));
    let client = client::authenticated(public, request, &parameters, key.as_ref(), deadline).await?;
    count_client(public, &client, key.as_deref(), deadline).await?;

    required(&parameters, "token")?;
    if let Some((token, key)) = token.zip(key) {
        let ending = end(Arc::clone(public), token, key, client.client_id, deadline);
        let ended = public.ports.tasks.run(ending).await?;
        ended.map_err(OAuthError::failed)?;
        record_holder(public, request).await;
    }
    Ok(response::empty(StatusCode::OK, &request.trace_id))
}

async fn end(
    public: Arc<Public>,
    token: PresentedToken,
    key: Arc<PresentedKey>,
    client_id: ClientId,
    deadline: Deadline,
) -> Result<(), Error> {
    let attempt = || async {
        let Some(holder) = deadline.run(key.holder(&public)).await?? else {
            return Ok(());
        };
        let locks = LockSet::of_row(Row::Family(key.token.family));
        let locks = locks.by_application(holder.seller, holder.client_id);
        let beginning = public.ports.units.begin_within(&locks, deadline.for_turn());
        let transaction = deadline.run(beginning).await??;
        let revoking = revoke_own(transaction.as_ref(), token, client_id);
        deadline.run(revoking).await??;
        transaction.commit().await?;
        Ok(())
    };
    retry(attempt).await
}
