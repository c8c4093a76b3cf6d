//! `/panel/once/{form}`: shows the result of a form once.

use actix_web::HttpResponse;
use askama::Template;
use oauth::ClientId;
use usecases::shown_once::{SentForm, ShownSecret, take};
use uuid::Uuid;

use super::{ok, see_other};
use crate::frame::Frame;
use crate::page_error::PageError;
use crate::page_request::SignedInRequest;

#[derive(Template)]
#[template(path = "once.html")]
struct OncePage {
    frame: Frame,
    client_id: String,
    secret: String,
    secret_label: &'static str,
    link: String,
    label: &'static str,
}

/// GET: takes the result and shows it. HEAD leaves it, because nobody would see it.
pub(crate) async fn page(request: SignedInRequest) -> Result<HttpResponse, PageError> {
    let form: Uuid = request.id()?;
    if request.head {
        return Err(PageError::ShownBefore);
    }
    let kept = request.store((request.session(), form), |tx, panel, (session, form)| {
        Box::pin(take(tx, panel.sealer.as_ref(), *session, *form))
    });
    let t = &request.texts().once;
    // In the other language nothing would be left to show.
    let frame = |title| Frame {
        switch: String::new(),
        ..request.frame(title)
    };
    let application = |title, id: Uuid, secret| {
        let client_id = ClientId::from(id).to_string();
        OncePage {
            frame: frame(title),
            link: format!("/panel/applications/{client_id}"),
            client_id,
            secret,
            secret_label: t.client_secret,
            label: t.to_application,
        }
    };
    ok(&match kept.await?.ok_or(PageError::ShownBefore)? {
        ShownSecret::Registered(id, secret) => application(t.registered, id, secret.unwrap_or_default()),
        ShownSecret::Rotated(id, secret) => application(t.rotated, id, secret),
        ShownSecret::Token(_, token) => OncePage {
            frame: frame(t.token),
            client_id: String::new(),
            secret: token,
            secret_label: t.token_label,
            link: "/panel/tokens".to_owned(),
            label: t.to_tokens,
        },
    })
}

/// Redirects to the page that shows the form's result.
pub(super) fn redirect(form: SentForm) -> Result<HttpResponse, PageError> {
    see_other(&format!("/panel/once/{}", form.number))
}
