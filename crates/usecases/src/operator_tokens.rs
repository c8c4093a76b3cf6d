//! Operators' tokens: made, listed and revoked on the command line.

use kernel::{Invalid, Randomness, StoreError};
use oauth::{OperatorToken, OperatorTokens};
use uuid::Uuid;

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
    tokens: &dyn OperatorTokens,
    randomness: &dyn Randomness,
    name: &str,
) -> Result<(Uuid, OperatorToken), StoreError> {
    let (id, token) = (
        randomness.uuid(),
        OperatorToken::from_random(&randomness.secret()),
    );
    tokens.add_operator_token(id, name, token.hash()).await?;
    Ok((id, token))
}
