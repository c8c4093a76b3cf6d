//! Operator tokens, created and revoked on the command line, with an audit log entry.

use accounts::{AccountStore, Action};
use async_trait::async_trait;
use kernel::{Invalid, Randomness, StoreError};
use oauth::OperatorToken;
use uuid::Uuid;

use crate::{ActingOperator, Transaction, UnitOfWorkError, Work};

const NAME_MAX: usize = 100;

/// Checks a token's name, a label of 1 to 100 characters.
pub fn operator_token_name(name: String) -> Result<String, Invalid> {
    if name.trim().is_empty() || name.chars().count() > NAME_MAX {
        return Err(Invalid::new(format!("must have 1 to {NAME_MAX} characters")));
    }
    Ok(name)
}

/// Creates a token; it is shown once.
pub async fn create_operator_token(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    name: &str,
) -> Result<(Uuid, OperatorToken), StoreError> {
    let (id, token) = (
        randomness.uuid(),
        OperatorToken::from_random(&randomness.secret()),
    );
    accounts.add_operator_token(id, name, token.hash()).await?;
    ActingOperator::CommandLine
        .note(accounts, Action::OperatorTokenMade, id)
        .await?;
    Ok((id, token))
}

/// Revokes a token, effective from the commit on; false if no live token has this id.
pub async fn revoke_operator_token(accounts: &dyn AccountStore, id: Uuid) -> Result<bool, StoreError> {
    if !accounts.revoke_operator_token(id).await? {
        return Ok(false);
    }
    ActingOperator::CommandLine
        .note(accounts, Action::OperatorTokenRevoked, id)
        .await?;
    Ok(true)
}

/// [`create_operator_token`] as a unit of work.
pub struct OperatorTokenCreation<'a> {
    pub randomness: &'a dyn Randomness,
    /// A name that [`operator_token_name`] accepts.
    pub name: &'a str,
}

#[async_trait]
impl Work for OperatorTokenCreation<'_> {
    type Done = (Uuid, OperatorToken);
    type Error = UnitOfWorkError;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        Ok(create_operator_token(tx, self.randomness, self.name).await?)
    }
}

/// [`revoke_operator_token`] as a unit of work.
#[derive(Debug)]
pub struct OperatorTokenRevocation(pub Uuid);

#[async_trait]
impl Work for OperatorTokenRevocation {
    type Done = bool;
    type Error = UnitOfWorkError;

    async fn run(&self, tx: &dyn Transaction) -> Result<bool, Self::Error> {
        Ok(revoke_operator_token(tx, self.0).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{chance, noting};

    #[tokio::test]
    async fn a_new_token_is_noted_and_a_revocation_that_revokes() {
        let mut tx = noting(1, Action::OperatorTokenMade);
        tx.expect_add_operator_token().returning(|_, _, _| Ok(()));
        let (id, token) = create_operator_token(&tx, &chance(), "ci").await.unwrap();
        assert_eq!(id, Uuid::from_u128(1));
        assert!(token.reveal().starts_with("ps_op_"));

        let mut tx = noting(1, Action::OperatorTokenRevoked);
        tx.expect_revoke_operator_token()
            .returning(|id| Ok(id == Uuid::from_u128(7)));
        for (id, revoked) in [(7, true), (8, false)] {
            let done = revoke_operator_token(&tx, Uuid::from_u128(id)).await;
            assert_eq!(done.unwrap(), revoked);
        }
    }
}
