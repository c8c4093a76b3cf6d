//! The authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3), which a client sends through the seller's
//! browser.

use std::collections::HashSet;

use kernel::Invalid;

use crate::{Application, ApplicationStatus, ClientId, CodeChallenge, ScopeSet};

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
    Client(&'static str),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameter<'a> {
    /// Absent, or without a value, which is equivalent (RFC 6749 §3.1).
    Missing,
    Once(&'a str),
    Repeated,
}

/// The decoded parameters of a request, in the order received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizationQuery(Vec<(String, String)>);

impl AuthorizationQuery {
    pub const fn new(parameters: Vec<(String, String)>) -> Self {
        Self(parameters)
    }

    fn get(&self, name: &str) -> Parameter<'_> {
        let mut values = self
            .0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (Some(_), Some(_)) => Parameter::Repeated,
            (Some(value), None) if !value.is_empty() => Parameter::Once(value),
            _ => Parameter::Missing,
        }
    }

    fn first_repeated(&self) -> Option<&str> {
        let mut earlier = HashSet::with_capacity(self.0.len());
        let mut names = self.0.iter().map(|(name, _)| name.as_str());
        names.find(|name| !earlier.insert(*name))
    }

    /// The id of the client to look up; None if it cannot be the id of an application here.
    pub fn client_id(&self) -> Result<Option<ClientId>, AuthorizationRefusal> {
        match self.get("client_id") {
            Parameter::Once(text) => Ok(text.parse().ok()),
            Parameter::Missing => Err(direct("Send client_id, the id of a registered application.")),
            Parameter::Repeated => Err(direct("Send client_id once.")),
        }
    }

    /// Validates the request of a looked-up application, in the order of D80: client, redirect URI, repeated
    /// parameters, response type, state, PKCE, scope.
    pub fn check(
        &self,
        application: Option<&Application>,
    ) -> Result<AuthorizationRequest, AuthorizationRefusal> {
        let application = known(application)?;
        let redirect_uri = self.redirect_uri(application)?;
        let state = match self.get("state") {
            Parameter::Once(state) if state.chars().count() <= *STATE.end() => Some(state),
            _ => None,
        };
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
        let given = match self.get("redirect_uri") {
            Parameter::Once(given) => given,
            Parameter::Missing => {
                return Err(direct(
                    "Send redirect_uri, one of the application's registered addresses.",
                ));
            }
            Parameter::Repeated => return Err(direct("Send redirect_uri once.")),
        };
        if application
            .redirect_uris
            .iter()
            .any(|registered| registered == given)
        {
            Ok(given)
        } else {
            Err(direct(
                "This redirect_uri is not registered for the application: it has to be one of its addresses, character \
                 for character.",
            ))
        }
    }

    fn without_repetition(&self) -> Result<(), (RedirectError, String)> {
        match self.first_repeated() {
            None => Ok(()),
            Some(name) => {
                let shown: String = name.chars().take(40).filter(char::is_ascii_graphic).collect();
                Err(invalid(format!("Send the parameter {shown} once.")))
            }
        }
    }

    fn response_type(&self) -> Result<(), (RedirectError, String)> {
        match self.get("response_type") {
            Parameter::Once("code") => Ok(()),
            Parameter::Missing | Parameter::Repeated => Err(invalid("Send response_type=code.".to_owned())),
            Parameter::Once(_) => {
                let description = "Only response_type=code is supported.".to_owned();
                Err((RedirectError::UnsupportedResponseType, description))
            }
        }
    }

    fn state(&self) -> Result<String, (RedirectError, String)> {
        match self.get("state") {
            Parameter::Once(state) if STATE.contains(&state.chars().count()) => Ok(state.to_owned()),
            _ => Err(invalid(format!(
                "Send state: {} to {} unguessable characters.",
                STATE.start(),
                STATE.end()
            ))),
        }
    }

    fn challenge(&self) -> Result<CodeChallenge, (RedirectError, String)> {
        let Parameter::Once(given) = self.get("code_challenge") else {
            let description = "Send code_challenge, the base64url of the SHA-256 of the code_verifier, and \
                               code_challenge_method=S256: PKCE is required.";
            return Err(invalid(description.to_owned()));
        };
        if self.get("code_challenge_method") != Parameter::Once("S256") {
            return Err(invalid("Send code_challenge_method=S256.".to_owned()));
        }
        CodeChallenge::new(given.to_owned())
            .map_err(|wrong: Invalid| invalid(format!("code_challenge {wrong}.")))
    }

    fn scopes(&self, application: &Application) -> Result<ScopeSet, (RedirectError, String)> {
        let refused = |description: String| Err((RedirectError::InvalidScope, description));
        let given = match self.get("scope") {
            Parameter::Once(given) => given,
            Parameter::Missing | Parameter::Repeated => "",
        };
        let scopes = match ScopeSet::parse(given) {
            Ok(scopes) if scopes.is_empty() => {
                return refused("Send scope: at least one, separated by spaces.".to_owned());
            }
            Ok(scopes) => scopes,
            Err(_) => return refused("scope contains an unknown scope.".to_owned()),
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
    let found = found.ok_or(AuthorizationRefusal::Client("Unknown client_id."))?;
    if found.status == ApplicationStatus::Suspended {
        return Err(AuthorizationRefusal::Client("This application is suspended."));
    }
    Ok(found)
}

fn direct(description: impl Into<String>) -> AuthorizationRefusal {
    AuthorizationRefusal::Direct(description.into())
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
