//! Operator tokens, created and revoked on the command line, with an audit log entry.

use accounts::{AccountStore, Action, NewOperatorToken};
use kernel::{Randomness, TransactionError};
use oauth::OperatorToken;
use uuid::Uuid;

use crate::ActingOperator;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{chance, logging};

    #[tokio::test]
    async fn a_creation_and_an_effective_revocation_are_logged() {
        let mut tx = logging(1, Action::OperatorTokenCreated);
        tx.expect_add_operator_token().returning(|_, _, _| Ok(()));
        let created = create_operator_token(&tx, &chance(), NewOperatorToken::named("ci")).await;
        let (id, token) = created.unwrap();
        assert_eq!(id, Uuid::from_u128(1));
        assert!(token.reveal().starts_with("ps_op_"));
        for (id, times) in [(7, 1), (8, 0)] {
            let mut tx = logging(times, Action::OperatorTokenRevoked);
            tx.expect_revoke_operator_token()
                .returning(|id| Ok(id == Uuid::from_u128(7)));
            let revoked = revoke_operator_token(&tx, Uuid::from_u128(id)).await.unwrap();
            assert_eq!(revoked, times == 1);
        }
    }
}
