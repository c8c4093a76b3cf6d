//! Operator tokens, created and revoked on the command line, with an audit log entry.

use accounts::{AccountStore, Action, NewOperatorToken};
use kernel::{Randomness, TransactionError};
use oauth::{OperatorToken, SecretHash};
use uuid::Uuid;

use crate::failure::present;
use crate::revoke_tokens::NoSuchToken;
use crate::{Acting, ActingOperator, Failure};

/// Creates a token, which is shown once, with a name that [`accounts::token_name`] accepts.
pub async fn create_operator_token(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    new: NewOperatorToken,
) -> Result<(Uuid, OperatorToken), TransactionError> {
    let (id, token) = (
        randomness.uuid(),
        OperatorToken::from_random(&randomness.secret()),
    );
    accounts.add_operator_token(id, token.hash(), new).await?;
    let by = ActingOperator::CommandLine;
    by.log(accounts, Action::OperatorTokenCreated, id).await?;
    Ok((id, token))
}

/// Revokes a token, effective from the commit on; false if no live token has this id.
pub async fn revoke_operator_token(accounts: &dyn AccountStore, id: Uuid) -> Result<bool, TransactionError> {
    let revoked = accounts.revoke_operator_token(id).await?;
    if revoked {
        let by = ActingOperator::CommandLine;
        by.log(accounts, Action::OperatorTokenRevoked, id).await?;
    }
    Ok(revoked)
}

/// Revokes a leaked token; returns its id. Revoking it again is harmless.
pub async fn revoke_presented(
    accounts: &dyn AccountStore,
    hash: SecretHash,
) -> Result<Uuid, Failure<NoSuchToken>> {
    let id = present(accounts.operator_token(hash).await?, NoSuchToken)?;
    revoke_operator_token(accounts, id).await?;
    Ok(id)
}
