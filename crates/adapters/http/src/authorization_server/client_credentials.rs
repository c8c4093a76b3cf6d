//! The `client_credentials` grant: a token over the application owner's own account (contract: Flows 1).

use std::sync::Arc;

use async_trait::async_trait;
use oauth::{Application, Grant, IssuedToken};
use usecases::issue_client_token::issue_client_token;
use usecases::{Transaction, UnitOfWorkError, Work, transact};

use super::error::OAuthError;
use super::parameters::Parameters;
use super::token::Issued;
use crate::Public;
use crate::deadline::Deadline;

/// Issues the token. The transaction is a task of its own, so that a client that goes away leaves no COMMIT half-way.
pub(super) async fn issue(
    public: &Arc<Public>,
    client: &Application,
    parameters: &Parameters,
    deadline: Deadline,
) -> Result<Issued, OAuthError> {
    let work = Issue {
        grant: oauth::client_credentials(client, parameters.get("scope"))?,
        public: Arc::clone(public),
    };
    let task = async move { transact(work.public.units.as_ref(), &work).await };
    let IssuedToken { token, scopes } = deadline.hold(public.tasks.run(task)).await???;
    Ok(Issued {
        access: token,
        refresh: None,
        scopes,
    })
}

struct Issue {
    grant: Grant,
    public: Arc<Public>,
}

#[async_trait]
impl Work for Issue {
    type Done = IssuedToken;
    type Error = UnitOfWorkError;

    async fn run(&self, transaction: &dyn Transaction) -> Result<IssuedToken, UnitOfWorkError> {
        let lifetime = self.public.settings.access_token_ttl;
        let randomness = self.public.randomness.as_ref();
        let now = transaction.now();
        Ok(issue_client_token(transaction, randomness, self.grant, lifetime, now).await?)
    }
}
