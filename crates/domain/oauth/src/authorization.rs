//! The authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3), which a client sends through the seller's
//! browser.

use std::collections::HashSet;

use kernel::Invalid;

use crate::{Application, ApplicationStatus, ClientId, CodeChallenge, InvalidClient, ScopeSet};

/// The allowed length of `state`, in characters (D69).
const STATE: std::ops::RangeInclusive<usize> = 8..=1024;

/// A valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationRequest {
    pub client_id: ClientId,
    /// The redirect target; one of the application's registered redirect URIs.
    pub redirect_uri: String,
    /// The requested scopes; at least one.
    pub scopes: ScopeSet,
    /// Returned byte for byte.
    pub state: String,
    /// The PKCE challenge for the exchange.
    pub challenge: CodeChallenge,
}

kernel::words! {
    /// An error that is returned to the client through the seller's browser: the value of `error` (RFC 6749
    /// §4.1.2.1).
    pub enum RedirectError {
        /// A response type other than `code`.
        UnsupportedResponseType = "unsupported_response_type",
        /// A parameter is missing, repeated or malformed.
        InvalidRequest = "invalid_request",
        /// A scope that does not exist, or that the application does not have.
        InvalidScope = "invalid_scope",
        /// The seller refused, or the application may not ask this seller.
        AccessDenied = "access_denied",
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationRefusal {
    /// 400 `invalid_client`, shown in the browser: there is no redirect URI to return to.
    Client(InvalidClient),
    /// 400 `invalid_request`, shown in the browser: the redirect URI is not trusted.
    Direct(String),
    /// Returned to the client at its redirect URI.
    Redirected {
        redirect_uri: String,
        /// The `state` to echo, if the request has a valid one.
        state: Option<String>,
        error: RedirectError,
        /// Advice for the client's developer.
        description: String,
    },
}

/// The decoded parameters of a request, in the order received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizationQuery(Vec<(String, String)>);

impl AuthorizationQuery {
    pub const fn new(parameters: Vec<(String, String)>) -> Self {
        Self(parameters)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let given = self.0.iter().filter(move |(key, _)| key == name);
        given.map(|(_, value)| value.as_str())
    }

    /// The parameter's value if it is given once. One without a value counts as absent (RFC 6749 §3.1).
    fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.all(name);
        let first = values.next().filter(|value| !value.is_empty());
        first.filter(|_| values.next().is_none())
    }

    /// The value of a parameter without which there is no redirect URI to return to.
    fn required(&self, name: &str, what: &str) -> Result<&str, AuthorizationRefusal> {
        let is_repeated = self.all(name).nth(1).is_some();
        let how = if is_repeated { " once" } else { what };
        let refused = || AuthorizationRefusal::Direct(format!("Send {name}{how}."));
        self.get(name).ok_or_else(refused)
    }

    /// The id of the client to look up; None if it cannot be the id of an application here.
    pub fn client_id(&self) -> Result<Option<ClientId>, AuthorizationRefusal> {
        let text = self.required("client_id", ", the id of a registered application")?;
        Ok(text.parse().ok())
    }

    /// Validates the request of a looked-up application, in the order of D80: client, redirect URI, repeated
    /// parameters, response type, state, PKCE, scope.
    pub fn check(
        &self,
        application: Option<&Application>,
    ) -> Result<AuthorizationRequest, AuthorizationRefusal> {
        let application = known(application)?;
        let redirect_uri = self.redirect_uri(application)?;
        let state = self.get("state");
        let state = state.filter(|state| state.chars().count() <= *STATE.end());
        let refused = |(error, description): (RedirectError, String)| AuthorizationRefusal::Redirected {
            redirect_uri: redirect_uri.to_owned(),
            state: state.map(str::to_owned),
            error,
            description,
        };
        self.without_repetition().map_err(refused)?;
        self.response_type().map_err(refused)?;
        let state = self.state().map_err(refused)?;
        let challenge = self.challenge().map_err(refused)?;
        let scopes = self.scopes(application).map_err(refused)?;
        Ok(AuthorizationRequest {
            client_id: application.client_id,
            redirect_uri: redirect_uri.to_owned(),
            scopes,
            state,
            challenge,
        })
    }

    fn redirect_uri(&self, application: &Application) -> Result<&str, AuthorizationRefusal> {
        let what = ", one of the application's registered addresses";
        let given = self.required("redirect_uri", what)?;
        if application.redirect_uris.iter().any(|uri| uri == given) {
            return Ok(given);
        }
        let unknown = "This redirect_uri is not registered for the application: it has to be one of its addresses, \
                       character for character.";
        Err(AuthorizationRefusal::Direct(unknown.to_owned()))
    }

    fn without_repetition(&self) -> Result<(), (RedirectError, String)> {
        let mut earlier = HashSet::with_capacity(self.0.len());
        let mut names = self.0.iter().map(|(name, _)| name.as_str());
        match names.find(|name| !earlier.insert(*name)) {
            None => Ok(()),
            Some(name) => {
                let shown: String = name.chars().take(40).filter(char::is_ascii_graphic).collect();
                Err(invalid(format!("Send the parameter {shown} once.")))
            }
        }
    }

    fn response_type(&self) -> Result<(), (RedirectError, String)> {
        match self.get("response_type") {
            Some("code") => Ok(()),
            None => Err(invalid("Send response_type=code.".to_owned())),
            Some(_) => {
                let description = "Only response_type=code is supported.".to_owned();
                Err((RedirectError::UnsupportedResponseType, description))
            }
        }
    }

    fn state(&self) -> Result<String, (RedirectError, String)> {
        match self.get("state") {
            Some(state) if STATE.contains(&state.chars().count()) => Ok(state.to_owned()),
            _ => Err(invalid(format!(
                "Send state: {} to {} unguessable characters of UTF-8.",
                STATE.start(),
                STATE.end()
            ))),
        }
    }

    fn challenge(&self) -> Result<CodeChallenge, (RedirectError, String)> {
        let Some(given) = self.get("code_challenge") else {
            let description = "Send code_challenge, the base64url of the SHA-256 of the code_verifier, and \
                               code_challenge_method=S256: PKCE is required.";
            return Err(invalid(description.to_owned()));
        };
        if self.get("code_challenge_method") != Some("S256") {
            return Err(invalid("Send code_challenge_method=S256.".to_owned()));
        }
        CodeChallenge::new(given.to_owned())
            .map_err(|wrong: Invalid| invalid(format!("code_challenge {wrong}.")))
    }

    fn scopes(&self, application: &Application) -> Result<ScopeSet, (RedirectError, String)> {
        let refused = |description: String| Err((RedirectError::InvalidScope, description));
        let scopes = match ScopeSet::parse(self.get("scope").unwrap_or_default()) {
            Ok(scopes) if scopes.is_empty() => {
                return refused("Send scope: at least one, separated by spaces.".to_owned());
            }
            Ok(scopes) => scopes,
            Err(_) => {
                return refused(
                    "An unknown scope: separate scopes by spaces; the metadata lists all.".to_owned(),
                );
            }
        };
        match scopes.iter().find(|scope| !application.scopes.contains(*scope)) {
            None => Ok(scopes),
            Some(missing) => refused(format!("The application does not have the scope {missing}.")),
        }
    }
}

/// An application that may request consent. The built-in one, which carries personal tokens, may not.
fn known(application: Option<&Application>) -> Result<&Application, AuthorizationRefusal> {
    let found = application.filter(|application| !application.built_in);
    let found = found.ok_or(AuthorizationRefusal::Client(InvalidClient::Credentials))?;
    if found.status == ApplicationStatus::Suspended {
        let suspended = InvalidClient::Suspended { is_proved: false };
        return Err(AuthorizationRefusal::Client(suspended));
    }
    Ok(found)
}

const fn invalid(description: String) -> (RedirectError, String) {
    (RedirectError::InvalidRequest, description)
}

/// A redirect URI with the parameters of a response, appended to an existing query (RFC 6749 §4.1.2).
pub fn redirect_url(redirect_uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    let joint = match redirect_uri.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some((_, query)) if query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{redirect_uri}{joint}{}", query.finish())
}

#[cfg(test)]
mod tests;
