//! The rules for passwords and personal tokens.

/// A rule that a value breaks. The text is worded like [`kernel::Invalid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("must have at least {0} characters")]
    MinCharacters(usize),
    #[error("must have at most {0} bytes")]
    MaxBytes(usize),
    #[error("must be harder to guess: it is one of the first that anybody would try")]
    HardToGuess,
    #[error("must have 1 to {0} characters")]
    TokenName(usize),
    #[error("must lie in the future, or be absent for a token that does not expire")]
    FutureExpiry,
    #[error(transparent)]
    Scopes(#[from] oauth::Rule),
}
