//! Answers: pages, and the way to another page after a form.

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use askama::Template;

use crate::refusal::Refusal;

/// A page with this status.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Result<HttpResponse, Refusal> {
    let mut response = HttpResponse::with_body(status, BoxBody::new(template.render()?));
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    Ok(response)
}

/// The way to another page, which the browser asks for with GET (303).
pub(crate) fn see_other(location: &str) -> Result<HttpResponse, Refusal> {
    let location = HeaderValue::from_str(location).map_err(|error| Refusal::Failed(error.into()))?;
    let mut response = HttpResponse::with_body(StatusCode::SEE_OTHER, BoxBody::new(()));
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
