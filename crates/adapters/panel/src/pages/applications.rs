//! `/panel/applications` and the page of each application.

use actix_web::http::StatusCode;
use askama::Template;
use futures_util::TryFutureExt as _;
use oauth::{Application, ApplicationStatus, ClientId, ClientType, Purpose, RawEdit, Shown};
use usecases::own_applications::{self, OwnApplicationRefusal, is_own};
use uuid::Uuid;

use super::usage::Usage;
use super::{ROWS, ScopeBoxes, confirm, done, next_page, ok, once, page as html, scope_names, scope_options};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

const LIST: &str = "/panel/applications";

#[derive(Template)]
#[template(path = "applications.html")]
struct ListPage {
    frame: Frame,
    applications: Vec<Application>,
    /// The address of the next page; empty for none.
    next: String,
}

/// GET: the seller's applications.
pub(crate) async fn list(request: SignedInRequest) -> PageResult {
    let applications = &request.panel.applications;
    let (owner, before) = (request.seller().id, request.position("before")?);
    let mut applications = applications.applications_of(owner, before, ROWS + 1).await?;
    let id = |last: &Application| last.client_id.to_string();
    ok(&ListPage {
        frame: request.frame(request.texts().frame.applications),
        next: next_page(LIST, "before", &mut applications, id),
        applications,
    })
}

#[derive(Template)]
#[template(path = "application.html")]
struct DetailsPage {
    frame: Frame,
    issues: Issues,
    number: Uuid,
    /// What the form shows, to detect an edit conflict.
    shown: Shown,
    scopes: ScopeBoxes,
    /// Empty while each scope counts at once.
    scopes_hint: &'static str,
    usage: Usage,
    application: Application,
    raw: RawEdit,
}

/// GET: one application.
pub(crate) async fn details(request: SignedInRequest) -> PageResult {
    let application = own_application(&request).await?;
    let (raw, shown) = (present(&application), application.shown());
    render(&request, application, raw, shown, Issues::none()).await
}

/// The form with the present values.
fn present(application: &Application) -> RawEdit {
    RawEdit {
        description: application.description.clone(),
        redirect_uris: application.redirect_uris.clone(),
        scopes: scope_names(application.wanted()),
    }
}

/// POST: saves the editable fields.
pub(crate) async fn save(request: SignedInRequest) -> PageResult {
    let application = own_application(&request).await?;
    let raw = RawEdit {
        description: Some(request.fields.long_text("description")),
        redirect_uris: request.fields.lines("redirect_uris"),
        scopes: request.fields.scopes(),
    };
    let shown = request.fields.get("shown").parse().ok();
    let edit = match raw.clone().check() {
        Ok(edit) => edit,
        Err(violations) => {
            let issues = Issues::of(&violations, request.texts());
            let shown = shown.unwrap_or_else(|| application.shown());
            return render(&request, application, raw, shown, issues).await;
        }
    };
    let input = (request.acting(), application.client_id, edit, shown);
    let saved = request.change(input, |tx, _, (by, id, edit, shown)| {
        let (edit, now) = (edit.clone(), tx.now());
        Box::pin(own_applications::edit(tx, tx, *by, *id, edit, *shown, now))
    });
    match (saved.await?, shown) {
        (Ok(()), _) => done("saved", &address(&application)),
        (Err(OwnApplicationRefusal::Changed(_)), Some(shown)) => render_changed(&request, raw, shown).await,
        _ => Err(PageError::NotFound),
    }
}

/// The form after an edit conflict: the current values of the changed fields, and the seller's input in the
/// others.
async fn render_changed(request: &SignedInRequest, mut entered: RawEdit, shown: Shown) -> PageResult {
    let application = own_application(request).await?;
    let present = present(&application);
    let mut issues = Issues::none();
    for field in application.changed_since(shown) {
        match field {
            "description" => entered.description.clone_from(&present.description),
            "redirect_uris" => entered.redirect_uris.clone_from(&present.redirect_uris),
            _ => entered.scopes.clone_from(&present.scopes),
        }
        issues.add_labelled(field, request.texts().application.changed_since, request.texts());
    }
    issues.status = StatusCode::CONFLICT;
    let shown = application.shown();
    render(request, application, entered, shown, issues).await
}

/// POST: replaces the secret, and redirects to the page that shows the new one.
pub(crate) async fn rotate(request: SignedInRequest) -> PageResult {
    let (form, id) = (request.form()?, request.id::<ClientId>()?);
    let (back, input) = (format!("{LIST}/{id}"), (request.acting(), id));
    let rotated = request.change_once(form, &back, input, |tx, panel, (by, id)| {
        let randomness = panel.ports.randomness.as_ref();
        let rotated = own_applications::rotate_secret(tx, tx, randomness, *by, *id, tx.now());
        Box::pin(rotated.map_ok(Some))
    });
    rotated.await?.map_err(|_| PageError::NotFound)?;
    once::redirect(form)
}

/// GET: asks for confirmation before deleting.
pub(crate) async fn deletion(request: SignedInRequest) -> PageResult {
    let application = own_application(&request).await?;
    let t = &request.texts().application;
    let (title, back) = ((t.confirm_title)(&application.name), address(&application));
    confirm(&request, title, t.confirm_text, t.delete, &back)
}

pub(crate) async fn delete(request: SignedInRequest) -> PageResult {
    let (form, input) = (request.form()?, (request.acting(), request.id()?));
    let deleted = request.change_once(form, LIST, input, |tx, _, (by, id)| {
        Box::pin(own_applications::delete(tx, tx, *by, *id).map_ok(|()| None))
    });
    deleted.await?.map_err(|_| PageError::NotFound)?;
    done("deleted", LIST)
}

/// The address of the application's page.
fn address(application: &Application) -> String {
    format!("{LIST}/{}", application.client_id)
}

/// The application in the path; another seller's counts as not found (D91).
async fn own_application(request: &SignedInRequest) -> PageResult<Application> {
    let found = request.panel.applications.client(request.id()?).await?;
    let own = found.filter(|application| is_own(application, request.seller().id));
    own.ok_or(PageError::NotFound)
}

async fn render(
    request: &SignedInRequest,
    application: Application,
    raw: RawEdit,
    shown: Shown,
    issues: Issues,
) -> PageResult {
    let hint = request.texts().application.scopes_hint;
    let template = DetailsPage {
        frame: request.frame(application.name.clone()),
        issues,
        number: request.panel.ports.randomness.uuid(),
        shown,
        scopes: scope_options(&raw.scopes),
        scopes_hint: application.ceiling().map_or("", |_| hint),
        usage: Usage::read(request, &application).await?,
        application,
        raw,
    };
    html(template.issues.status, &template)
}

impl DetailsPage {
    const fn status_text(&self) -> &'static str {
        let t = &self.frame.t.application;
        let of = &self.application;
        match (of.status, of.purpose, of.client_type) {
            (ApplicationStatus::Pending, _, ClientType::Confidential) => t.pending,
            (ApplicationStatus::Pending, _, ClientType::Public) => t.pending_public,
            (ApplicationStatus::Suspended, ..) => t.suspended,
            (ApplicationStatus::Active, Purpose::OwnUse, _) => t.active_own_use,
            (ApplicationStatus::Active, ..) => t.active,
        }
    }
}
