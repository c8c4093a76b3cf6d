//! What a client presents for a pair of tokens: an authorization code, or a refresh token.

use oauth::{
    ClientId, CodePresented, CodeVerifier, Credential, CredentialKind, FamilyId, GrantRefusal, TokenKey,
};

use super::error::OAuthError;
use super::grant_type::GrantType;
use super::parameters::Parameters;

/// Everything that the exchange is judged by.
pub(super) enum Presented {
    /// The code with this key.
    Code(TokenKey, CodePresented),
    /// The refresh token with this key, by this client.
    RefreshToken(TokenKey, ClientId),
}

impl Presented {
    /// Reads an exchange: first that everything is there, then that the credential can be one at all.
    pub(super) fn code(parameters: &Parameters, client_id: ClientId) -> Result<Self, OAuthError> {
        let code = required(parameters, "code")?;
        let redirect_uri = required(parameters, "redirect_uri")?.to_owned();
        let verifier = required(parameters, "code_verifier")?.to_owned();
        let verifier = CodeVerifier::new(verifier)
            .map_err(|wrong| OAuthError::invalid_request(format!("code_verifier {wrong}.")))?;
        let presented = CodePresented {
            client_id,
            redirect_uri,
            verifier,
        };
        Ok(Self::Code(
            key(CredentialKind::AuthorizationCode, code)?,
            presented,
        ))
    }

    /// Reads a refresh, likewise.
    pub(super) fn refresh_token(parameters: &Parameters, client_id: ClientId) -> Result<Self, OAuthError> {
        let token = required(parameters, "refresh_token")?;
        Ok(Self::RefreshToken(
            key(CredentialKind::RefreshToken, token)?,
            client_id,
        ))
    }

    /// The family that the credential names.
    pub(super) const fn family(&self) -> FamilyId {
        match self {
            Self::Code(key, _) | Self::RefreshToken(key, _) => key.family,
        }
    }
}

/// The credential of a call, where it has one that can be one of ours; whatever else is wrong with the call.
pub(super) fn credential(grant_type: GrantType, parameters: &Parameters) -> Option<Credential> {
    let (kind, name) = match grant_type {
        GrantType::ClientCredentials => return None,
        GrantType::AuthorizationCode => (CredentialKind::AuthorizationCode, "code"),
        GrantType::RefreshToken => (CredentialKind::RefreshToken, "refresh_token"),
    };
    Credential::parse(kind, parameters.get(name)?)
}

/// A parameter that the call cannot do without.
pub(super) fn required<'a>(parameters: &'a Parameters, name: &str) -> Result<&'a str, OAuthError> {
    parameters.get(name).ok_or_else(|| missing(name))
}

/// The refusal of a call without that parameter.
pub(super) fn missing(name: &str) -> OAuthError {
    OAuthError::invalid_request(format!("Send {name}."))
}

fn key(kind: CredentialKind, text: &str) -> Result<TokenKey, OAuthError> {
    let credential = Credential::parse(kind, text).ok_or(GrantRefusal::Unknown)?;
    Ok(credential.key())
}
