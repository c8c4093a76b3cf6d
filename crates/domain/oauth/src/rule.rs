//! The rules for what an owner enters about an application.

/// A rule that a value breaks. The text is worded like [`kernel::Invalid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error(
        "must be 3 to 40 characters: letters A to Z in either case, digits, '.', '_', '-', and single spaces between them"
    )]
    Name,
    #[error("is reserved for personal tokens; choose another name")]
    NameReserved,
    #[error("must have at most {0} characters")]
    MaxCharacters(usize),
    #[error("must be an absolute https:// URL in ASCII, without white space and backslashes")]
    Https,
    #[error("must not have a fragment")]
    NoFragment,
    #[error("must not have user information before the host")]
    NoUserInformation,
    #[error("must not point to localhost or a non-public address")]
    PublicHost,
    #[error("must not be given twice")]
    Unique,
    #[error("must be at most {0}")]
    MaxAddresses(usize),
    /// Holds the words.
    #[error("must be one of: {0}")]
    OneOf(String),
    /// Holds the unknown name.
    #[error("must be a known scope, not `{0}`")]
    KnownScope(String),
    #[error("must name at least one scope")]
    AnyScope,
    #[error("must be true: the API terms must be accepted")]
    TermsAccepted,
}
