//! `/panel/applications/new`

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use oauth::{ClientType, Purpose, RawRegistration};
use usecases::own_applications::{self, Refusal as Refused};
use usecases::sent_form::NumberUsed;
use usecases::shown_once::Sent;
use uuid::Uuid;

use super::once;
use super::scope_list::{Group, tickable};
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::refusal::Refusal;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "registration.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    number: Uuid,
    description: String,
    redirect_uris: String,
    purposes: Vec<Choice>,
    client_types: Vec<Choice>,
    scopes: Vec<Group>,
    raw: RawRegistration,
}

/// One of several possibilities.
struct Choice {
    word: &'static str,
    label: &'static str,
    chosen: bool,
}

/// GET: an empty form.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let number = member.visit.panel.randomness.uuid();
    let raw = RawRegistration::default();
    shown(&member, raw, number, Issues::none(), StatusCode::OK)
}

/// POST: registers, and leads to where the secret is shown.
pub(crate) async fn sent(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let form = member.sent(&fields)?;
    let raw = RawRegistration {
        name: fields.text("name"),
        description: Some(fields.text("description")),
        documentation_url: fields.get("documentation_url").trim().to_owned(),
        purpose: fields.text("purpose"),
        client_type: fields.text("client_type"),
        redirect_uris: fields.lines("redirect_uris"),
        scopes: fields.scopes(),
        accept_terms: matches!(fields.get("accept_terms").trim(), "true" | "on" | "1" | "yes"),
    };
    let t = member.visit.language.texts();
    let registration = match raw.clone().check() {
        Ok(registration) => registration,
        Err(violations) => {
            let issues = Issues::of(&violations, t);
            return shown(
                &member,
                raw,
                form.number,
                issues,
                StatusCode::UNPROCESSABLE_ENTITY,
            );
        }
    };
    let input = (member.acting(), form, registration);
    let registered = change(&member.visit.panel, input, |transaction, panel, input| {
        let (by, form, registration) = input;
        let sent = Sent {
            form: *form,
            sealer: panel.sealer.as_ref(),
        };
        let (now, randomness) = (transaction.now(), panel.randomness.as_ref());
        Box::pin(own_applications::register(
            transaction,
            transaction,
            randomness,
            (*by, sent),
            registration.clone(),
            now,
        ))
    });
    match registered.await? {
        Ok(()) | Err(Refused::Form(NumberUsed::BySame)) => once::lead(form),
        Err(Refused::Form(NumberUsed::ByOther)) => Err(Refusal::FormUsed(member.visit.path)),
        Err(Refused::NameTaken) => {
            let issues = Issues::one("name", t.form.name_taken);
            shown(&member, raw, form.number, issues, StatusCode::CONFLICT)
        }
        Err(_) => Err(Refusal::NotFound),
    }
}

fn shown(
    member: &Member,
    raw: RawRegistration,
    number: Uuid,
    issues: Issues,
    status: StatusCode,
) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let purposes = Purpose::ALL.map(|purpose| Choice {
        word: purpose.as_str(),
        label: (t.purpose)(purpose),
        chosen: raw.purpose == purpose.as_str(),
    });
    let client_types = ClientType::ALL.map(|kind| Choice {
        word: kind.as_str(),
        label: (t.client_type)(kind),
        chosen: raw.client_type == kind.as_str(),
    });
    let template = Page {
        frame: Frame::of_member(member, t.form.title),
        issues,
        number,
        description: raw.description.clone().unwrap_or_default(),
        redirect_uris: raw.redirect_uris.join("\n"),
        purposes: purposes.into(),
        client_types: client_types.into(),
        scopes: tickable(&raw.scopes, t),
        raw,
    };
    crate::reply::page(status, &template)
}
