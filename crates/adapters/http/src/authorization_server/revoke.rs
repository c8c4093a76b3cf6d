//! `POST /oauth/revoke` (RFC 7009)

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use oauth::{ClientId, Credential, CredentialKind};
use usecases::repeat;
use usecases::revoke_tokens::{PresentedToken, revoke_own};
use web::deadline::Deadline;
use web::request::Request;
use web::{Error, response};

use super::client::{self, Parameters};
use super::error::{OAuthError, set_pragma};
use super::limits::{Limit, count, count_client};
use super::token::required;
use crate::Public;

/// Revokes a token of the client. The checks follow the order of the token endpoint, and the two endpoints share their limits (D79).
pub(super) async fn revoke(public: &Arc<Public>, request: &mut Request) -> Result<HttpResponse, OAuthError> {
    count(public, Limit::TokenByAddress(request.client), request.deadline()).await?;

    let parameters = Parameters::read(request, &public.ports.service).await?;
    let deadline = request.deadline();

    let token = parameters
        .get("token")
        .and_then(|text| Credential::parse(CredentialKind::RefreshToken, text));
    let client = client::authenticated(public, request, &parameters, token.as_ref(), deadline);
    let client = client.await?;
    count_client(public, &client, token.as_ref(), deadline).await?;

    if let Some(token) = PresentedToken::parse(required(&parameters, "token")?) {
        let ending = end(Arc::clone(public), token, client.client_id, deadline);
        let ended = public.ports.tasks.run(ending).await?;
        ended.map_err(OAuthError::failed)?;
    }
    let mut response = response::empty(StatusCode::OK, &request.trace_id);
    set_pragma(response.headers_mut());
    Ok(response)
}

async fn end(
    public: Arc<Public>,
    token: PresentedToken,
    client_id: ClientId,
    deadline: Deadline,
) -> Result<(), Error> {
    let attempt = || async {
        let transaction = deadline.run(public.ports.units.begin(&token.locks())).await??;
        deadline
            .run(revoke_own(transaction.as_ref(), token, client_id))
            .await??;
        Ok(transaction.commit().await?)
    };
    repeat(attempt).await
}
