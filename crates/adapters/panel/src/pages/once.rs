//! `/panel/once/{form}`: what a form made, shown once.

use std::convert::Infallible;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use usecases::Failure;
use usecases::sent_form::SentForm;
use usecases::shown_once::{Shown, take};
use uuid::Uuid;

use crate::change::change;
use crate::frame::Frame;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::texts::Texts;
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

/// GET: takes what waits. HEAD looks at nothing, since nobody would see it.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let form: Uuid = member.visit.parameter.parse().map_err(|_| Refusal::NotFound)?;
    if member.visit.head {
        return Err(Refusal::ShownBefore);
    }
    let under = (member.session(), form);
    let taken = change(&member.visit.panel, under, |transaction, panel, under| {
        let taking = take(transaction, panel.sealer.as_ref(), *under);
        Box::pin(async move { Ok::<_, Failure<Infallible>>(taking.await?) })
    });
    let shown = match taken.await? {
        Ok(Some(shown)) => shown,
        Ok(None) => return Err(Refusal::ShownBefore),
        Err(never) => match never {},
    };
    crate::reply::page(StatusCode::OK, &of(&member, shown))
}

/// Leads to where what the form made is shown.
pub(super) fn lead(form: SentForm) -> Result<HttpResponse, Refusal> {
    see_other(&format!("/panel/once/{}", form.number))
}

fn of(member: &Member, shown: Shown) -> Page {
    let t = member.visit.language.texts();
    let framed = |title: &'static str| Frame::of_member(member, title);
    match shown {
        Shown::Registered(id, secret) => application(
            framed(t.once.registered),
            t,
            id.to_string(),
            secret.unwrap_or_default(),
        ),
        Shown::Rotated(id, secret) => application(framed(t.once.rotated), t, id.to_string(), secret),
        Shown::Token(_, token) => Page {
            frame: framed(t.once.token),
            client_id: String::new(),
            secret: token,
            secret_label: t.once.token_label,
            link: "/panel/tokens".to_owned(),
            label: t.once.to_tokens,
        },
    }
}

fn application(frame: Frame, t: &Texts, client_id: String, secret: String) -> Page {
    Page {
        frame,
        link: format!("/panel/applications/{client_id}"),
        client_id,
        secret,
        secret_label: t.once.client_secret,
        label: t.once.to_application,
    }
}
