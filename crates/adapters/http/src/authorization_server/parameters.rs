//! The parameters of a call: a form or a JSON object of strings (contract: POST /oauth/token).

use bytes::Bytes;
use web::Json;
use web::body::BodyLimits;
use web::form::Form;
use web::json::Object;
use web::media_type::MediaType;

use super::error::OAuthError;
use crate::HttpSettings;
use crate::arrival::Arrival;

/// What the body says. It carries secrets, so it cannot be printed.
pub(super) struct Parameters(Source);

enum Source {
    Form(Form),
    Json(Object),
}

impl Parameters {
    /// Reads the body by its media type. Whatever is in the URL is left alone: secrets do not belong there.
    pub(super) async fn read(arrival: &mut Arrival, settings: &HttpSettings) -> Result<Self, OAuthError> {
        let limits = BodyLimits {
            cap: BodyLimits::OAUTH_CAP,
            within: settings.body_timeout,
        };
        let body = arrival.body(limits).await.map_err(OAuthError::closing)?;
        match MediaType::of(arrival.headers()) {
            Some(MediaType::Form) => form(&body),
            Some(MediaType::Json) => json(&body),
            Some(MediaType::NdJson) | None => Err(OAuthError::invalid_request(
                "Send the parameters as application/x-www-form-urlencoded or application/json, in UTF-8.",
            )),
        }
    }

    /// The value of a parameter. One without a value counts as omitted (RFC 6749 §3.2).
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = match &self.0 {
            Source::Form(form) => form.get(name),
            Source::Json(object) => object.get(name).and_then(text),
        };
        value.filter(|value| !value.is_empty())
    }
}

fn form(body: &Bytes) -> Result<Parameters, OAuthError> {
    let form = Form::parse(body).map_err(|error| OAuthError::invalid_request(error.to_string()))?;
    match form.repeated() {
        None => Ok(Parameters(Source::Form(form))),
        Some(name) => Err(OAuthError::invalid_request(format!(
            "Send the parameter {name} once."
        ))),
    }
}

fn json(body: &Bytes) -> Result<Parameters, OAuthError> {
    let object = Object::parse(body).map_err(|error| OAuthError::invalid_request(error.to_string()))?;
    let other = object
        .names()
        .find(|name| object.get(name).and_then(text).is_none());
    if let Some(name) = other {
        return Err(OAuthError::invalid_request(format!(
            "The parameter {name} must be a string."
        )));
    }
    Ok(Parameters(Source::Json(object)))
}

fn text(json: &Json) -> Option<&str> {
    match json {
        Json::String(text) => Some(text),
        _ => None,
    }
}
