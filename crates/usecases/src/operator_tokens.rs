//! Operator tokens, created and revoked on the command line, with an audit log entry.

use accounts::{Action, NewOperatorToken};
use kernel::Randomness;
use oauth::{OperatorToken, SecretHash};
use uuid::Uuid;

use crate::{ActingOperator, Transaction, UnitOfWork, UnitOfWorkError, transact};

/// Creates a token, which is shown once, with a name that [`accounts::token_name`] accepts.
pub async fn create_operator_token(
    units: &dyn UnitOfWork,
    randomness: &dyn Randomness,
    new: NewOperatorToken,
) -> Result<(Uuid, OperatorToken), UnitOfWorkError> {
    let (id, token) = (
        randomness.uuid(),
        OperatorToken::from_random(&randomness.secret()),
    );
    let input = (id, token.hash(), new);
    transact(units, &input, |tx, (id, hash, new)| {
        Box::pin(add(tx, *id, *hash, new.clone()))
    })
    .await?;
    Ok((id, token))
}

async fn add(
    tx: &dyn Transaction,
    id: Uuid,
    hash: SecretHash,
    new: NewOperatorToken,
) -> Result<(), UnitOfWorkError> {
    tx.add_operator_token(id, hash, new).await?;
    let by = ActingOperator::CommandLine;
    Ok(by.log(tx, Action::OperatorTokenCreated, id).await?)
}

/// Revokes a token, effective from the commit on; false if no live token has this id.
pub async fn revoke_operator_token(units: &dyn UnitOfWork, id: Uuid) -> Result<bool, UnitOfWorkError> {
    transact(units, &id, |tx, id| Box::pin(revoke(tx, *id))).await
}

async fn revoke(tx: &dyn Transaction, id: Uuid) -> Result<bool, UnitOfWorkError> {
    let revoked = tx.revoke_operator_token(id).await?;
    if revoked {
        let by = ActingOperator::CommandLine;
        by.log(tx, Action::OperatorTokenRevoked, id).await?;
    }
    Ok(revoked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MockUnitOfWork;
    use crate::test_support::{chance, logging};

    #[tokio::test]
    async fn a_creation_and_an_effective_revocation_are_logged() {
        let units = |action, times| {
            let mut units = MockUnitOfWork::new();
            units.expect_begin().once().returning(move || {
                let mut tx = logging(times, action);
                tx.expect_add_operator_token().returning(|_, _, _| Ok(()));
                tx.expect_revoke_operator_token()
                    .returning(|id| Ok(id == Uuid::from_u128(7)));
                tx.expect_commit().once().returning(|| Ok(()));
                Ok(Box::new(tx))
            });
            units
        };
        let created = units(Action::OperatorTokenCreated, 1);
        let created = create_operator_token(&created, &chance(), NewOperatorToken::named("ci")).await;
        let (id, token) = created.unwrap();
        assert_eq!(id, Uuid::from_u128(1));
        assert!(token.reveal().starts_with("ps_op_"));
        for (id, times) in [(7, 1), (8, 0)] {
            let units = units(Action::OperatorTokenRevoked, times);
            let revoked = revoke_operator_token(&units, Uuid::from_u128(id)).await.unwrap();
            assert_eq!(revoked, times == 1);
        }
    }
}
