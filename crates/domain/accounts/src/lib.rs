//! Accounts: sellers, their sessions, links, passwords and personal tokens, operator tokens, the audit log,
//! mails about accounts.

mod account;
mod audit;
mod password;
mod personal_token;
mod ports;
mod session;

pub use account::*;
pub use audit::*;
pub use password::*;
pub use personal_token::*;
pub use ports::*;
pub use session::*;

/// A rule for passwords and personal tokens that a value breaks. The text is worded like [`kernel::Invalid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("must have at least {0} characters")]
    MinCharacters(usize),
    #[error("must have at most {0} bytes")]
    MaxBytes(usize),
    #[error("must not be a common password, nor the e-mail address or its part before the @")]
    HardToGuess,
    #[error("must have 1 to {0} characters, at least one of them visible, and no control characters")]
    TokenName(usize),
    #[error("must be in the future and before the year 10000, or absent for a token that does not expire")]
    FutureExpiry,
    #[error(transparent)]
    Scopes(#[from] oauth::Rule),
}
