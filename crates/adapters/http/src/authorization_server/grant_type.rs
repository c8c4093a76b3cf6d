//! What a call of the token endpoint asks for.

use super::error::{Code, OAuthError};
use super::parameters::Parameters;

/// A grant type that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrantType {
    /// RFC 6749 §4.4
    ClientCredentials,
    /// RFC 6749 §4.1.3
    AuthorizationCode,
    /// RFC 6749 §6
    RefreshToken,
}

impl GrantType {
    /// Every grant type that is served.
    pub(super) const ALL: [Self; 3] = [
        Self::ClientCredentials,
        Self::AuthorizationCode,
        Self::RefreshToken,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
        }
    }

    /// Whether only a client that proves itself by a secret may ask for it (D78).
    pub(super) const fn needs_secret(self) -> bool {
        match self {
            Self::ClientCredentials => true,
            Self::AuthorizationCode | Self::RefreshToken => false,
        }
    }

    /// The grant type of a call. A missing one is an unsupported one, as the contract has it (D77).
    pub(super) fn of(parameters: &Parameters) -> Result<Self, OAuthError> {
        let given = parameters.get("grant_type");
        let served = Self::ALL
            .into_iter()
            .find(|served| given == Some(served.as_str()));
        served.ok_or_else(|| Self::unsupported(given))
    }

    /// The refusal of a call that asks for something else, or for nothing.
    pub(super) fn unsupported(given: Option<&str>) -> OAuthError {
        let known = Self::ALL.map(Self::as_str).join(", ");
        let description = match given {
            None => format!("Send a grant_type: {known}."),
            Some(_) => format!("There is no such grant type here. This server takes {known}."),
        };
        OAuthError::new(Code::UnsupportedGrantType, description)
    }
}
