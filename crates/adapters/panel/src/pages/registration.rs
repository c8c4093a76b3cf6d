//! `/panel/applications/new`

use actix_web::HttpResponse;
use askama::Template;
use oauth::{ClientType, Purpose, RawRegistration};
use usecases::own_applications::{self, RegistrationRefusal};
use usecases::shown_once::NumberUsed;
use uuid::Uuid;

use super::{ScopeGroup, once, page as html, scope_options};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::page_error::PageError;
use crate::page_request::SignedInRequest;

#[derive(Template)]
#[template(path = "registration.html")]
struct RegistrationPage {
    frame: Frame,
    issues: Issues,
    number: Uuid,
    description: String,
    redirect_uris: String,
    /// Value and label of each choice, and whether it is selected.
    purposes: [(&'static str, &'static str, bool); 3],
    client_types: [(&'static str, &'static str, bool); 2],
    scopes: [ScopeGroup; 2],
    terms_url: Option<String>,
    raw: RawRegistration,
}

/// GET: an empty form.
pub(crate) async fn page(request: SignedInRequest) -> Result<HttpResponse, PageError> {
    let number = request.panel.ports.randomness.uuid();
    render(&request, RawRegistration::default(), number, Issues::none())
}

/// POST: registers the application, and redirects to the page that shows its secret.
pub(crate) async fn submit(request: SignedInRequest) -> Result<HttpResponse, PageError> {
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
    let registered = request.change((form, registration), |tx, panel, (form, registration)| {
        Box::pin(own_applications::register(
            tx,
            tx,
            panel.ports.randomness.as_ref(),
            *form,
            panel.sealer.as_ref(),
            registration.clone(),
            panel.settings.applications,
            tx.now(),
        ))
    });
    match registered.await? {
        Ok(()) | Err(own_applications::Refusal::Form(NumberUsed::BySame)) => once::redirect(form),
        Err(own_applications::Refusal::Form(NumberUsed::ByOther)) => {
            Err(PageError::FormUsed(request.request.path))
        }
        Err(own_applications::Refusal::Registration(RegistrationRefusal::NameTaken)) => {
            let issues = Issues::conflict("name", t.form.name_taken);
            render(&request, raw, form.number, issues)
        }
        Err(own_applications::Refusal::Registration(RegistrationRefusal::TooMany)) => {
            let issues = Issues::conflict("name", t.form.too_many);
            render(&request, raw, form.number, issues)
        }
        Err(own_applications::Refusal::Registration(RegistrationRefusal::TooOften(quota))) => {
            Err(PageError::TooMany(quota))
        }
        Err(_) => Err(PageError::NotFound),
    }
}

fn render(
    request: &SignedInRequest,
    raw: RawRegistration,
    number: Uuid,
    issues: Issues,
) -> Result<HttpResponse, PageError> {
    let t = request.texts();
    let template = RegistrationPage {
        frame: request.frame(t.form.title),
        issues,
        number,
        description: raw.description.clone().unwrap_or_default(),
        redirect_uris: raw.redirect_uris.join("\n"),
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
