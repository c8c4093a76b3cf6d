//! The pages, and helpers for their responses and for the checkboxes of scopes.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod connections;
pub(crate) mod consent;
pub(crate) mod deliveries;
pub(crate) mod forgotten;
pub(crate) mod links;
pub(crate) mod once;
pub(crate) mod registration;
pub(crate) mod sign_in;
pub(crate) mod sign_out;
pub(crate) mod tokens;
pub(crate) mod trade;
mod usage;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use askama::Template;
use oauth::{Scope, ScopeSet};
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use crate::frame::Frame;
use crate::next::Next;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

/// GET `/panel`: redirects to the first page.
pub(crate) async fn home(_: SignedInRequest) -> PageResult {
    see_other(&Next::default().path())
}

/// A page with this status.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> PageResult {
    let text = template.render().map_err(PageError::failed)?;
    let mut response = HttpResponse::with_body(status, BoxBody::new(text));
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    Ok(response)
}

/// A page with status 200.
fn ok(template: &impl Template) -> PageResult {
    page(StatusCode::OK, template)
}

/// The question before an action that cannot be undone. Its form is sent to the path of its page.
#[derive(Template)]
#[template(path = "confirmation.html")]
struct Confirmation<'a> {
    frame: Frame,
    action: &'a str,
    text: &'static str,
    submit: &'static str,
    /// The page to go back to.
    back: &'a str,
    number: Uuid,
}

/// Asks for confirmation on the page of this request.
fn confirm(
    request: &SignedInRequest,
    title: String,
    text: &'static str,
    submit: &'static str,
    back: &str,
) -> PageResult {
    ok(&Confirmation {
        frame: request.frame(title),
        action: &request.path,
        text,
        submit,
        back,
        number: request.panel.ports.randomness.uuid(),
    })
}

/// A text, and a link that leads on.
#[derive(Template)]
#[template(path = "message.html")]
pub(crate) struct MessagePage<'a> {
    pub(crate) frame: Frame,
    pub(crate) text: &'a str,
    pub(crate) link: &'a str,
    pub(crate) label: &'static str,
    /// Of a failure.
    pub(crate) trace_id: Option<&'a str>,
}

/// A redirect to another page, which the browser requests with GET (303).
pub(crate) fn see_other(location: &str) -> PageResult {
    let location = HeaderValue::from_str(location).map_err(PageError::failed)?;
    let mut response = HttpResponse::with_body(StatusCode::SEE_OTHER, BoxBody::new(()));
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// A redirect to the page at this path, which may have a query, with the word of the notice to show.
pub(crate) fn done(word: &str, path: &str) -> PageResult {
    see_other(&with_query(path, "done", word))
}

/// An address, which may have a query, with one more parameter.
pub(crate) fn with_query(address: &str, name: &str, value: &str) -> String {
    let mark = if address.contains('?') { '&' } else { '?' };
    let pair = Serializer::new(String::new()).append_pair(name, value).finish();
    format!("{address}{mark}{pair}")
}

/// Rows on a page of a list.
const ROWS: u16 = 50;

/// Leaves the rows of one page, and returns the address of the next one, which begins after the last row;
/// empty for none.
fn next_page<T>(address: &str, name: &str, rows: &mut Vec<T>, position: impl FnOnce(&T) -> String) -> String {
    let is_last = rows.len() <= usize::from(ROWS);
    rows.truncate(ROWS.into());
    let last = rows.last().filter(|_| !is_last);
    last.map_or_else(String::new, |last| with_query(address, name, &position(last)))
}

/// Checkboxes of the scopes in use, then of those reserved for announced resources; the template relies on this order.
/// Each: its id, the scope, whether it is ticked. The summary of errors links to the first one's id.
type ScopeBoxes = [Vec<(String, Scope, bool)>; 2];

/// Every scope, ticked if its name is among these.
fn scope_options(ticked: &[String]) -> ScopeBoxes {
    let shown = |(place, scope): (usize, &Scope)| {
        let id = match place {
            0 => "scopes".to_owned(),
            _ => format!("scopes-{place}"),
        };
        let is_ticked = ticked.iter().any(|name| name == scope.as_str());
        (id, *scope, is_ticked)
    };
    [true, false].map(|in_use| {
        let all = Scope::ALL.iter().enumerate();
        let group = all.filter(|(_, scope)| Scope::IN_USE.contains(scope) == in_use);
        group.map(shown).collect()
    })
}

fn scope_names(scopes: ScopeSet) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}
