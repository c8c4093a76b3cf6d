//! `POST /oauth/revoke` (RFC 7009)

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use async_trait::async_trait;
use oauth::{Application, ClientId, ClientType, Credential, CredentialKind};
use usecases::revoke_token::{Revocable, revoke_token};
use usecases::{Transaction, UnitOfWorkError, Work, transact};
use web::reply;

use super::error::{OAuthError, forbid_old_caches};
use super::parameters::Parameters;
use super::presented::required;
use super::{client, limits};
use crate::Public;
use crate::arrival::Arrival;
use crate::deadline::Deadline;
use crate::in_time::InTime;
use crate::listener::Listener;

/// Ends a token of the client. The checks are in the order of the token endpoint, with which its calls are counted (D79).
pub(super) async fn revoke(listener: &Listener, arrival: &mut Arrival) -> Result<HttpResponse, OAuthError> {
    let (public, settings) = (&listener.public, &listener.public.settings);
    let deadline = Deadline::of_arrival(arrival.at);
    limits::token_by_address(listener, arrival.client, deadline).await?;

    let parameters = Parameters::read(arrival, settings).await?;
    let deadline = deadline.later_by(arrival.reading());

    let applications = public.applications.as_ref();
    let client = client::authenticated(arrival.headers(), &parameters, applications, deadline).await?;
    arrival.span.came_for(client.client_id);
    if counts(public, &client, &parameters, deadline).await? {
        limits::token_by_client(listener, client.client_id, deadline).await?;
    }

    if let Some(token) = Revocable::parse(required(&parameters, "token")?) {
        end(public, token, client.client_id, deadline).await?;
    }
    let mut response = reply::empty(StatusCode::OK, &arrival.trace_id);
    forbid_old_caches(response.headers_mut());
    Ok(response)
}

/// Whether the call counts against the client. Nobody has proved to be a public client but by a token of its own (D67).
async fn counts(
    public: &Public,
    client: &Application,
    parameters: &Parameters,
    deadline: Deadline,
) -> Result<bool, OAuthError> {
    if client.client_type == ClientType::Confidential {
        return Ok(true);
    }
    let token = parameters
        .get("token")
        .and_then(|text| Credential::parse(CredentialKind::RefreshToken, text));
    limits::is_its_own(public, client, token.as_ref(), deadline).await
}

async fn end(
    public: &Arc<Public>,
    token: Revocable,
    client_id: ClientId,
    deadline: Deadline,
) -> Result<(), OAuthError> {
    let public = Arc::clone(public);
    let tasks = public.tasks.clone();
    let task = async move {
        let units = InTime {
            inner: public.units.as_ref(),
            deadline,
        };
        let work = InTime {
            inner: &Revoke { token, client_id },
            deadline,
        };
        transact(&units, &work).await
    };
    Ok(tasks.run(task).await??)
}

struct Revoke {
    token: Revocable,
    client_id: ClientId,
}

#[async_trait]
impl Work for Revoke {
    type Done = ();
    type Error = UnitOfWorkError;

    async fn run(&self, transaction: &dyn Transaction) -> Result<(), UnitOfWorkError> {
        Ok(revoke_token(transaction, self.token, self.client_id).await?)
    }
}
