//! `/panel/applications` and the page of each application.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::Violations;
use oauth::{Application, ApplicationStatus, ClientId, ClientType, Purpose, RawEdit};
use usecases::own_applications::{self, Refusal as Refused, is_own};
use usecases::sent_form::NumberUsed;
use usecases::shown_once::Sent;
use uuid::Uuid;

use super::once;
use super::scope_list::{Group, names, tickable};
use super::usage::{Hour, Row, Usage};
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::texts::Texts;
use crate::visit::{Member, Visit};
use crate::when::When;

const LIST: &str = "/panel/applications";

#[derive(Template)]
#[template(path = "applications.html")]
struct ListPage {
    frame: Frame,
    applications: Vec<Listed>,
}

struct Listed {
    client_id: ClientId,
    name: String,
    status: &'static str,
    status_label: &'static str,
    purpose: &'static str,
    registered: When,
}

/// GET: the seller's applications.
pub(crate) async fn list(member: Member) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let found = member
        .visit
        .panel
        .applications
        .applications_of(member.seller().id)
        .await?;
    let listed = |application: Application| Listed {
        client_id: application.client_id,
        name: application.name,
        status: application.status.as_str(),
        status_label: (t.status)(application.status),
        purpose: (t.purpose)(application.purpose),
        registered: When(application.created_at),
    };
    let template = ListPage {
        frame: Frame::of_member(&member, t.applications.title).noting(&member.visit),
        applications: found.into_iter().map(listed).collect(),
    };
    crate::reply::page(StatusCode::OK, &template)
}

#[derive(Template)]
#[template(path = "application.html")]
struct OnePage {
    frame: Frame,
    issues: Issues,
    status_label: &'static str,
    status_text: &'static str,
    purpose: &'static str,
    client_type: &'static str,
    registered: When,
    confidential: bool,
    number: Uuid,
    description: String,
    redirect_uris: String,
    scopes: Vec<Group>,
    limit: u32,
    limit_high: u32,
    limit_used: u64,
    limit_text: String,
    usage: Vec<Row>,
    hours: Vec<Hour>,
    application: Application,
}

/// GET: one application.
pub(crate) async fn one(member: Member) -> Result<HttpResponse, Refusal> {
    let application = own(&member).await?;
    let raw = RawEdit {
        description: application.description.clone(),
        redirect_uris: application.redirect_uris.clone(),
        scopes: names(application.scopes),
    };
    shown(&member, application, raw, Issues::none(), StatusCode::OK).await
}

/// POST: saves what may be edited.
pub(crate) async fn save(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let application = own(&member).await?;
    let raw = RawEdit {
        description: Some(fields.text("description")),
        redirect_uris: fields.lines("redirect_uris"),
        scopes: fields.scopes(),
    };
    let edit = match raw.clone().check() {
        Ok(edit) => edit,
        Err(violations) => return wrong(&member, application, raw, &violations).await,
    };
    let id = application.client_id;
    let saved = change(
        &member.visit.panel,
        (member.acting(), id, edit),
        |transaction, _, input| {
            let (by, id, edit) = input;
            Box::pin(own_applications::edit(
                transaction,
                transaction,
                *by,
                *id,
                edit.clone(),
            ))
        },
    );
    saved.await?.map_err(|_| Refusal::NotFound)?;
    see_other(&Done::Saved.on(&format!("{LIST}/{id}")))
}

/// POST: replaces the secret, and leads to where the new one is shown.
pub(crate) async fn rotate(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let form = member.sent(&fields)?;
    let id = client_id(&member.visit)?;
    let input = (member.acting(), form, id);
    let rotated = change(&member.visit.panel, input, |transaction, panel, input| {
        let (by, form, id) = *input;
        let sent = Sent {
            form,
            sealer: panel.sealer.as_ref(),
        };
        let randomness = panel.randomness.as_ref();
        Box::pin(own_applications::rotate_secret(
            transaction,
            transaction,
            randomness,
            (by, sent),
            id,
        ))
    });
    match rotated.await? {
        Ok(()) | Err(Refused::Form(NumberUsed::BySame)) => once::lead(form),
        Err(Refused::Form(NumberUsed::ByOther)) => Err(Refusal::FormUsed(format!("{LIST}/{id}"))),
        Err(_) => Err(Refusal::NotFound),
    }
}

#[derive(Template)]
#[template(path = "deletion.html")]
struct DeletionPage {
    frame: Frame,
    client_id: ClientId,
}

/// GET: asks whether to delete.
pub(crate) async fn deletion(member: Member) -> Result<HttpResponse, Refusal> {
    let application = own(&member).await?;
    let title = (member.visit.language.texts().application.confirm_title)(&application.name);
    let template = DeletionPage {
        frame: Frame::of_member(&member, title),
        client_id: application.client_id,
    };
    crate::reply::page(StatusCode::OK, &template)
}

/// POST
pub(crate) async fn delete(member: Member, _fields: Fields) -> Result<HttpResponse, Refusal> {
    let input = (member.acting(), client_id(&member.visit)?);
    let deleted = change(&member.visit.panel, input, |transaction, _, (by, id)| {
        Box::pin(own_applications::delete(transaction, transaction, *by, *id))
    });
    deleted.await?.map_err(|_| Refusal::NotFound)?;
    see_other(&Done::Deleted.on(LIST))
}

fn client_id(visit: &Visit) -> Result<ClientId, Refusal> {
    visit.parameter.parse().map_err(|_| Refusal::NotFound)
}

/// The application of the path; another seller's is none (D91).
async fn own(member: &Member) -> Result<Application, Refusal> {
    let id = client_id(&member.visit)?;
    let found = member.visit.panel.applications.client(id).await?;
    found
        .filter(|application| is_own(application, member.seller().id))
        .ok_or(Refusal::NotFound)
}

async fn wrong(
    member: &Member,
    application: Application,
    raw: RawEdit,
    violations: &Violations,
) -> Result<HttpResponse, Refusal> {
    let issues = Issues::of(violations, member.visit.language.texts());
    shown(member, application, raw, issues, StatusCode::UNPROCESSABLE_ENTITY).await
}

async fn shown(
    member: &Member,
    application: Application,
    raw: RawEdit,
    issues: Issues,
    status: StatusCode,
) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let usage = Usage::read(member, &application).await?;
    let template = OnePage {
        frame: Frame::of_member(member, application.name.clone()).noting(&member.visit),
        issues,
        status_label: (t.status)(application.status),
        status_text: status_text(&application, t),
        purpose: (t.purpose)(application.purpose),
        client_type: (t.client_type)(application.client_type),
        registered: When(application.created_at),
        confidential: application.client_type == ClientType::Confidential,
        number: member.visit.panel.randomness.uuid(),
        description: raw.description.unwrap_or_default(),
        redirect_uris: raw.redirect_uris.join("\n"),
        scopes: tickable(&raw.scopes, t),
        limit: usage.limit,
        limit_high: usage.high(),
        limit_used: usage.used,
        limit_text: (t.usage.limit_text)(usage.used, usage.limit),
        usage: usage.rows,
        hours: usage.hours,
        application,
    };
    crate::reply::page(status, &template)
}

fn status_text(application: &Application, t: &Texts) -> &'static str {
    match (application.status, application.purpose) {
        (ApplicationStatus::Pending, _) => t.application.pending,
        (ApplicationStatus::Suspended, _) => t.application.suspended,
        (ApplicationStatus::Active, Purpose::OwnUse) => t.application.active_own_use,
        (ApplicationStatus::Active, _) => t.application.active,
    }
}
