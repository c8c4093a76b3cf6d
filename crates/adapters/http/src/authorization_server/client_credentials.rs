//! The `client_credentials` grant: a token over the application owner's own account (contract: Flows 1).

use oauth::{Application, IssuedToken};
use usecases::issue_client_token::issue_client_token;

use super::error::OAuthError;
use super::parameters::Parameters;
use super::token::Issued;
use crate::Public;
use crate::deadline::Deadline;

/// Issues the token. A client that goes away leaves nothing half-way: its token was stored in one step or not at all, and
/// nobody knows it.
pub(super) async fn issue(
    public: &Public,
    client: &Application,
    parameters: &Parameters,
    deadline: Deadline,
) -> Result<Issued, OAuthError> {
    let grant = oauth::client_credentials(client, parameters.get("scope"))?;
    let (tokens, randomness) = (public.client_tokens.as_ref(), public.randomness.as_ref());
    let lifetime = public.settings.access_token_ttl;
    let issuing = issue_client_token(tokens, randomness, grant, lifetime);
    let IssuedToken { token, scopes } = deadline.hold(issuing).await??;
    Ok(Issued {
        access: token,
        refresh: None,
        scopes,
    })
}
