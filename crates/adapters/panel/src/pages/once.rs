//! `/panel/once/{form}`: shows the result of a form once.

use askama::Template;
use oauth::ClientId;
use usecases::shown_once::{SentForm, ShownSecret, take};
use uuid::Uuid;

use super::{ok, see_other};
use crate::frame::Frame;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

#[derive(Template)]
#[template(path = "once.html")]
struct OncePage {
    frame: Frame,
    /// The application; none for a personal token.
    client_id: Option<ClientId>,
    /// Empty for a public application.
    secret: String,
}

/// GET: takes the result and shows it. HEAD leaves it, because nobody would see it.
pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let form: Uuid = request.id()?;
    if request.head {
        return Err(PageError::ShownBefore);
    }
    let kept = request.store((request.session(), form), |tx, panel, (session, form)| {
        Box::pin(take(tx, panel.sealer.as_ref(), *session, *form))
    });
    let t = &request.texts().once;
    let (title, client_id, secret) = match kept.await?.ok_or(PageError::ShownBefore)? {
        ShownSecret::Registered(id, secret) => (t.registered, Some(id.into()), secret.unwrap_or_default()),
        ShownSecret::Rotated(id, secret) => (t.rotated, Some(id.into()), secret),
        ShownSecret::Token(_, token) => (t.token, None, token),
    };
    let mut frame = request.frame(title);
    // In the other language nothing would be left to show.
    frame.switch.clear();
    ok(&OncePage {
        frame,
        client_id,
        secret,
    })
}

/// Redirects to the page that shows the form's result.
pub(super) fn redirect(form: SentForm) -> PageResult {
    see_other(&format!("/panel/once/{}", form.number))
}
