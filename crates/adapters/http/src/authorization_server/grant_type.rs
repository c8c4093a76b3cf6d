//! What a call asks for.

use super::error::{Code, OAuthError};
use super::parameters::Parameters;

/// A grant type that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrantType {
    /// RFC 6749 §4.4
    ClientCredentials,
}

/// Grant types of the contract that belong to the consent flow, which this server does not offer.
const OF_THE_CONSENT_FLOW: [&str; 2] = ["authorization_code", "refresh_token"];

impl GrantType {
    /// Every grant type that is served.
    pub(super) const ALL: [Self; 1] = [Self::ClientCredentials];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
        }
    }

    /// Whether only a client that proves itself by a secret may ask for it (D78).
    pub(super) const fn needs_secret(self) -> bool {
        match self {
            Self::ClientCredentials => true,
        }
    }

    /// The grant type of a call. A missing one is an unsupported one, as the contract has it (D77).
    pub(super) fn of(parameters: &Parameters) -> Result<Self, OAuthError> {
        let unsupported = |description: String| Err(OAuthError::new(Code::UnsupportedGrantType, description));
        let Some(given) = parameters.get("grant_type") else {
            return unsupported(format!("Send a grant_type: {}.", served()));
        };
        if let Some(served) = Self::ALL.into_iter().find(|served| served.as_str() == given) {
            return Ok(served);
        }
        if OF_THE_CONSENT_FLOW.contains(&given) {
            return unsupported(format!(
                "{given} is not available on this server yet. It takes {}.",
                served()
            ));
        }
        unsupported(format!(
            "There is no such grant type. This server takes {}.",
            served()
        ))
    }
}

fn served() -> String {
    GrantType::ALL.map(GrantType::as_str).join(", ")
}
