//! `/panel/applications/new`

use askama::Template;
use futures_util::TryFutureExt as _;
use oauth::{ClientType, Purpose, RawRegistration};
use usecases::own_applications::{RegistrationRefusal, register_in_panel};
use uuid::Uuid;

use super::{ScopeBoxes, once, page as html, scope_options};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

#[derive(Template)]
#[template(path = "registration.html")]
struct RegistrationPage {
    frame: Frame,
    issues: Issues,
    number: Uuid,
    /// Value and label of each choice, and whether it is selected.
    purposes: [(&'static str, &'static str, bool); 3],
    client_types: [(&'static str, &'static str, bool); 2],
    scopes: ScopeBoxes,
    terms_url: Option<String>,
    raw: RawRegistration,
}

/// GET: an empty form.
pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let number = request.panel.ports.randomness.uuid();
    render(&request, RawRegistration::default(), number, Issues::none())
}

/// POST: registers the application, and redirects to the page that shows its secret.
pub(crate) async fn submit(request: SignedInRequest) -> PageResult {
    let (form, fields, t) = (request.form()?, &request.fields, request.texts());
    let raw = RawRegistration {
        name: fields.text("name"),
        description: Some(fields.long_text("description")),
        documentation_url: fields.get("documentation_url").trim().to_owned(),
        purpose: fields.text("purpose"),
        client_type: fields.text("client_type"),
        redirect_uris: fields.lines("redirect_uris"),
        scopes: fields.scopes(),
        accept_terms: matches!(fields.get("accept_terms").trim(), "true" | "on" | "1" | "yes"),
    };
    let registration = match raw.clone().check() {
        Ok(registration) => registration,
        Err(violations) => return render(&request, raw, form.number, Issues::of(&violations, t)),
    };
    let input = (request.acting(), registration);
    let registered = request.change_once(form, &request.path, input, |tx, panel, (by, registration)| {
        let (randomness, limits) = (panel.ports.randomness.as_ref(), panel.settings.applications);
        let registered = register_in_panel(tx, tx, randomness, *by, registration.clone(), limits, tx.now());
        Box::pin(registered.map_ok(Some))
    });
    let (field, conflict) = match registered.await? {
        Ok(()) => return once::redirect(form),
        Err(RegistrationRefusal::NameTaken) => ("name", t.form.name_taken),
        Err(RegistrationRefusal::TooMany) => ("main", t.form.too_many),
        Err(RegistrationRefusal::TooOften(quota)) => return Err(PageError::TooMany(quota)),
        Err(RegistrationRefusal::Account(_)) => return Err(PageError::NotFound),
    };
    render(&request, raw, form.number, Issues::conflict(field, conflict))
}

fn render(request: &SignedInRequest, raw: RawRegistration, number: Uuid, issues: Issues) -> PageResult {
    let t = request.texts();
    let template = RegistrationPage {
        frame: request.frame(t.form.title),
        issues,
        number,
        purposes: Purpose::ALL.map(|purpose| {
            let word = purpose.as_str();
            (word, t.purpose(purpose), raw.purpose == word)
        }),
        client_types: ClientType::ALL.map(|kind| {
            let word = kind.as_str();
            (word, t.client_type(kind), raw.client_type == word)
        }),
        scopes: scope_options(&raw.scopes),
        terms_url: request.panel.settings.terms_url.clone(),
        raw,
    };
    html(template.issues.status, &template)
}
