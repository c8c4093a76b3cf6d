//! The page of a request that got no page of its own.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderValue, RETRY_AFTER};
use askama::Template;
use oauth::ConsentRefusal;
use web::{TraceId, response as plain};

use crate::Panel;
use crate::frame::Frame;
use crate::language::Language;
use crate::refusal::Refusal;
use crate::reply::{page, see_other};

#[derive(Template)]
#[template(path = "failure.html")]
struct Page<'a> {
    frame: Frame,
    text: &'a str,
    link: &'a str,
    label: &'static str,
    trace_id: &'a str,
}

const START: &str = "/panel/applications";
const FORGOTTEN: &str = "/panel/forgotten-password";

/// The answer to a refusal: for most a page that says what to do, in the look of the panel.
pub(crate) fn response(
    panel: &Panel,
    (trace_id, language): (&TraceId, Language),
    refusal: &Refusal,
) -> HttpResponse {
    let status = refusal.status();
    let answer = match refusal {
        Refusal::SignIn(next) => see_other(&next.sign_in()),
        refusal => {
            let (title, text, link) = said(language, refusal);
            let t = language.texts();
            let label = match refusal {
                Refusal::DeadLink => t.passwords.forgotten_title,
                Refusal::FormUsed(_) => t.failures.open_anew,
                _ => t.failures.start,
            };
            let page_of_it = Page {
                frame: Frame::bare(&panel.settings, language, title.to_owned()),
                text: &text,
                link,
                label,
                trace_id: trace_id.as_str(),
            };
            page(status, &page_of_it)
        }
    };
    let mut response = answer.unwrap_or_else(|_| plain::empty(status, trace_id));
    let seconds = match refusal {
        Refusal::TooMany(quota) => Some(quota.retry_after()),
        Refusal::Unavailable(_) | Refusal::Crowded => Some(1),
        _ => None,
    };
    if let Some(seconds) = seconds {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Title, text, and where to go from there.
fn said(language: Language, refusal: &Refusal) -> (&'static str, String, &str) {
    let t = &language.texts().failures;
    let (title, text) = match refusal {
        Refusal::TooMany(quota) => {
            let (title, text) = (t.too_many)(quota.retry_after());
            return (title, text, START);
        }
        Refusal::NotFound | Refusal::SignIn(_) => t.not_found,
        Refusal::StaleForm => t.stale_form,
        Refusal::Malformed | Refusal::Unreadable => t.malformed,
        Refusal::Consent(ConsentRefusal::Unknown) => t.unknown_consent,
        Refusal::Consent(ConsentRefusal::Expired) => t.expired_consent,
        Refusal::Consent(ConsentRefusal::Decided) => t.decided_consent,
        Refusal::Consent(ConsentRefusal::AnotherViewer) => t.others_consent,
        Refusal::DeadLink => t.dead_link,
        Refusal::FormUsed(_) => t.form_used,
        Refusal::ShownBefore => t.shown_before,
        Refusal::Unavailable(_) | Refusal::Crowded => t.unavailable,
        Refusal::Failed(_) => t.failed,
    };
    let link = match refusal {
        Refusal::DeadLink => FORGOTTEN,
        Refusal::FormUsed(page) => page,
        _ => START,
    };
    (title, text.to_owned(), link)
}
