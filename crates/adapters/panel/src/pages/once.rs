//! `/panel/once/{form}`: shows the result of a form once.

use actix_web::HttpResponse;
use askama::Template;
use oauth::ClientId;
use usecases::shown_once::SentForm;
use usecases::shown_once::{Sent, Shown, take};
use uuid::Uuid;

use super::{ok, see_other};
use crate::Panel;
use crate::frame::Frame;
use crate::refusal::Refusal;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "once.html")]
struct Page {
    frame: Frame,
    client_id: String,
    secret: String,
    secret_label: &'static str,
    link: String,
    label: &'static str,
}

/// GET: takes the result and shows it. HEAD leaves it, because nobody would see it.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let form: Uuid = member.id()?;
    if member.head {
        return Err(Refusal::ShownBefore);
    }
    let kept = member.store((member.session(), form), |tx, panel, under| {
        Box::pin(take(tx, panel.sealer.as_ref(), *under))
    });
    let t = &member.texts().once;
    let application = |title, id: ClientId, secret| Page {
        frame: member.frame(title),
        client_id: id.to_string(),
        secret,
        secret_label: t.client_secret,
        link: format!("/panel/applications/{id}"),
        label: t.to_application,
    };
    ok(&match kept.await?.ok_or(Refusal::ShownBefore)? {
        Shown::Registered(id, secret) => application(t.registered, id, secret.unwrap_or_default()),
        Shown::Rotated(id, secret) => application(t.rotated, id, secret),
        Shown::Token(_, token) => Page {
            frame: member.frame(t.token),
            client_id: String::new(),
            secret: token,
            secret_label: t.token_label,
            link: "/panel/tokens".to_owned(),
            label: t.to_tokens,
        },
    })
}

/// Redirects to the page that shows the form's result.
pub(super) fn lead(form: SentForm) -> Result<HttpResponse, Refusal> {
    see_other(&format!("/panel/once/{}", form.number))
}

/// A form whose result is stored until it is shown.
pub(super) fn sent(panel: &Panel, form: SentForm) -> Sent<'_> {
    let sealer = panel.sealer.as_ref();
    Sent { form, sealer }
}
