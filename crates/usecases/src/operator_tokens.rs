//! Operators' tokens: made and revoked on the command line, and noted.

use async_trait::async_trait;
use kernel::{Invalid, Randomness, StoreError};
use oauth::{Action, OperatorToken, OperatorTokenStore, PanelStore};
use uuid::Uuid;

use crate::{ActingOperator, Transaction, UnitOfWorkError, Work};

const NAME_MAX: usize = 100;

/// A name of 1 to 100 characters, to recognise a token by.
pub fn operator_token_name(name: String) -> Result<String, Invalid> {
    if name.trim().is_empty() || name.chars().count() > NAME_MAX {
        return Err(Invalid::new(format!("must have 1 to {NAME_MAX} characters")));
    }
    Ok(name)
}

/// Makes a token; it is shown once.
pub async fn create_operator_token(
    (tokens, panel): (&dyn OperatorTokenStore, &dyn PanelStore),
    randomness: &dyn Randomness,
    name: &str,
) -> Result<(Uuid, OperatorToken), StoreError> {
    let (id, token) = (
        randomness.uuid(),
        OperatorToken::from_random(&randomness.secret()),
    );
    tokens.add_operator_token(id, name, token.hash()).await?;
    ActingOperator::CommandLine
        .note(panel, Action::OperatorTokenMade, id)
        .await?;
    Ok((id, token))
}

/// Revokes a token, from the commit on; false when there is none alive with this id.
pub async fn revoke_operator_token(
    (tokens, panel): (&dyn OperatorTokenStore, &dyn PanelStore),
    id: Uuid,
) -> Result<bool, StoreError> {
    if !tokens.revoke_operator_token(id).await? {
        return Ok(false);
    }
    ActingOperator::CommandLine
        .note(panel, Action::OperatorTokenRevoked, id)
        .await?;
    Ok(true)
}

/// [`create_operator_token`] as a transaction of its own.
pub struct OperatorTokenCreation<'a> {
    /// Ids and secrets.
    pub randomness: &'a dyn Randomness,
    /// One that [`operator_token_name`] allows.
    pub name: &'a str,
}

impl std::fmt::Debug for OperatorTokenCreation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorTokenCreation")
    }
}

#[async_trait]
impl Work for OperatorTokenCreation<'_> {
    type Done = (Uuid, OperatorToken);
    type Error = UnitOfWorkError;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        Ok(create_operator_token((tx, tx), self.randomness, self.name).await?)
    }
}

/// [`revoke_operator_token`] as a transaction of its own.
#[derive(Debug)]
pub struct OperatorTokenRevocation(pub Uuid);

#[async_trait]
impl Work for OperatorTokenRevocation {
    type Done = bool;
    type Error = UnitOfWorkError;

    async fn run(&self, tx: &dyn Transaction) -> Result<bool, Self::Error> {
        Ok(revoke_operator_token((tx, tx), self.0).await?)
    }
}

#[cfg(test)]
mod tests {
    use oauth::{Actor, MockOperatorTokenStore, MockPanelStore};

    use super::*;
    use crate::test_support::chance;

    fn noting(action: Action, id: u128) -> MockPanelStore {
        let mut panel = MockPanelStore::new();
        panel
            .expect_note()
            .once()
            .withf(move |actor, address, noted, subject| {
                (*actor, *address, *noted) == (Actor::CommandLine, None, action)
                    && subject == Uuid::from_u128(id).to_string()
            })
            .returning(|_, _, _, _| Ok(()));
        panel
    }

    #[tokio::test]
    async fn a_new_token_is_noted_by_its_id() {
        let mut tokens = MockOperatorTokenStore::new();
        tokens.expect_add_operator_token().returning(|_, _, _| Ok(()));
        let panel = noting(Action::OperatorTokenMade, 1);
        let (id, token) = create_operator_token((&tokens, &panel), &chance(), "ci")
            .await
            .unwrap();
        assert_eq!(id, Uuid::from_u128(1));
        assert!(token.reveal().starts_with("ps_op_"));
    }

    #[tokio::test]
    async fn only_a_revocation_that_revokes_is_noted() {
        let mut tokens = MockOperatorTokenStore::new();
        tokens
            .expect_revoke_operator_token()
            .returning(|id| Ok(id == Uuid::from_u128(7)));
        let panel = noting(Action::OperatorTokenRevoked, 7);
        for (id, revoked) in [(7, true), (8, false)] {
            let done = revoke_operator_token((&tokens, &panel), Uuid::from_u128(id)).await;
            assert_eq!(done.unwrap(), revoked);
        }
    }
}
