//! The parameters of a call, a form or a JSON object of strings, and client authentication (RFC 6749 §2.3,
//! contract: Flows).

use std::sync::Arc;

use actix_web::HttpMessage;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use oauth::{Application, InvalidClient, Purpose, authenticate};
use web::ServiceSettings;
use web::authorization::{ClientCredentials, basic};
use web::body::BodyLimits;
use web::deadline::Deadline;
use web::form::Form;
use web::json::{Json, Object};
use web::media_type::{MediaType, is_compressed};
use web::request::Request;

use super::PresentedKey;
use super::error::OAuthError;
use super::limits::proves;
use super::token::GrantType;
use crate::Public;

/// 16 KiB (D7).
const BODY_CAP: usize = 16 * 1024;

/// The parameters in the body.
pub(super) struct Parameters(Form);

impl Parameters {
    /// Parses the body by its media type. The query is ignored: secrets do not belong in a URL.
    pub(super) async fn read(request: &mut Request, service: &ServiceSettings) -> Result<Self, OAuthError> {
        let limits = BodyLimits {
            cap: BODY_CAP,
            within: service.body_timeout,
        };
        let body = request.body(limits).await;
        let body = body.map_err(|error| OAuthError::closing(error.to_string()))?;
        if is_compressed(request.headers()) {
            let description = "Send no Content-Encoding: compressed bodies are not supported.";
            return Err(OAuthError::invalid_request(description));
        }
        match MediaType::of(request.headers()) {
            Some(MediaType::Form) => from_form(&body).map(Self),
            Some(MediaType::Json) => from_json(&body).map(Self),
            Some(MediaType::NdJson) | None => Err(OAuthError::invalid_request(
                "Send the parameters as application/x-www-form-urlencoded or application/json, in UTF-8.",
            )),
        }
    }

    /// The value of a parameter. An empty value counts as omitted (RFC 6749 §3.2).
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).filter(|value| !value.is_empty())
    }
}

fn from_form(body: &[u8]) -> Result<Form, OAuthError> {
    let form = Form::parse(body).map_err(|error| OAuthError::invalid_request(error.to_string()))?;
    match form.repeated(None) {
        None => Ok(form),
        Some(name) => Err(OAuthError::invalid_request(format!(
            "Send the parameter {name} once."
        ))),
    }
}

fn from_json(body: &[u8]) -> Result<Form, OAuthError> {
    let object = Object::parse(body).map_err(|error| OAuthError::invalid_request(error.to_string()))?;
    let pair = |(name, value): (String, Json)| match value {
        Json::String(text) => Ok((name, text)),
        _ => Err(OAuthError::invalid_request(format!(
            "The parameter {name} must be a string."
        ))),
    };
    object.into_members().into_iter().map(pair).collect()
}

/// The calling application, authenticated by its secret if it has one; `token` is the code or token that it
/// presents, and becomes an extension of the request. The access log names every known application, deleted
/// ones too.
pub(super) async fn authenticated(
    public: &Public,
    request: &Request,
    parameters: &Parameters,
    token: Option<&Arc<PresentedKey>>,
    deadline: Deadline,
) -> Result<Application, OAuthError> {
    if let Some(token) = token {
        request.http.extensions_mut().insert(Arc::clone(token));
    }
    let presented = presented(request.headers(), parameters)?;
    let Ok(client_id) = presented.client_id.parse() else {
        return Err(InvalidClient::Credentials.into());
    };
    let secret = presented.secret.as_str();
    let known = public.applications.known_client(client_id);
    let known = deadline.run(known).await??;
    // The application of personal tokens is nobody's client.
    let known = known.filter(|(application, _)| !application.built_in);
    let Some((application, ended)) = known else {
        return Err(InvalidClient::Credentials.into());
    };
    let grant_type = parameters.get("grant_type");
    let is_own =
        application.purpose == Purpose::OwnUse || grant_type == Some(GrantType::ClientCredentials.as_str());
    request.record_caller(|caller| {
        caller.client_id = Some(client_id);
        caller.seller = is_own.then_some(application.owner);
    });
    let authenticated = match ended {
        Some(refusal) => Err(refusal.disclosed_to(&application, secret)),
        None => authenticate(&application, secret),
    };
    match authenticated {
        Ok(()) => Ok(application),
        Err(InvalidClient::Suspended { is_proved: false }) => {
            let is_proved = proves(public, client_id, token.map(Arc::as_ref), deadline).await?;
            Err(InvalidClient::Suspended { is_proved }.into())
        }
        Err(refusal) => Err(refusal.into()),
    }
}

fn presented(headers: &HeaderMap, parameters: &Parameters) -> Result<ClientCredentials, OAuthError> {
    let in_body = (parameters.get("client_id"), parameters.get("client_secret"));
    let mut given = headers.get_all(AUTHORIZATION);
    match (given.next(), given.next(), in_body) {
        (None, _, (Some(client_id), secret)) => Ok(ClientCredentials {
            client_id: client_id.to_owned(),
            secret: secret.unwrap_or_default().to_owned(),
        }),
        (None, _, (None, _)) => Err(OAuthError::invalid_client(
            "Authenticate the client: by HTTP Basic, or by client_id and client_secret in the body. A public one sends client_id alone.",
        )),
        (Some(_), _, (_, Some(_))) => Err(OAuthError::invalid_request(
            "Send the client's credentials once: by HTTP Basic or in the body.",
        )),
        (Some(only), None, (also, None)) => {
            let presented = only.to_str().ok().and_then(basic).ok_or_else(malformed)?;
            match also {
                Some(other) if other != presented.client_id => Err(OAuthError::invalid_request(
                    "The client_id in the body differs from the one in the Authorization header.",
                )),
                _ => Ok(presented),
            }
        }
        (Some(_), Some(_), _) => Err(malformed()),
    }
}

fn malformed() -> OAuthError {
    OAuthError::invalid_client(
        "The Authorization header must be HTTP Basic, once: Basic base64(client_id:client_secret).",
    )
}
