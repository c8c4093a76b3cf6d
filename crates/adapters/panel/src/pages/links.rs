//! One-time links: invitation, new password, signing in. GET shows a form and uses nothing up, so that a mail scanner does no
//! harm (D131).

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::Violations;
use oauth::{BrowserSecret, LinkKind, NewPassword, SecretHash, Seller};
use usecases::account_links::{set_password, sign_in_by_link};

use super::sign_in::into_panel;
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::texts::Texts;
use crate::visit::{Visit, Visitor};

#[derive(Template)]
#[template(path = "link.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    lead: &'static str,
    /// The path of the page itself.
    action: String,
    submit: &'static str,
    asks_password: bool,
    seller: Seller,
}

/// GET
pub(crate) async fn invitation(visitor: Visitor) -> Result<HttpResponse, Refusal> {
    page(visitor, LinkKind::Invitation).await
}

/// GET
pub(crate) async fn reset(visitor: Visitor) -> Result<HttpResponse, Refusal> {
    page(visitor, LinkKind::PasswordReset).await
}

/// GET
pub(crate) async fn sign_in(visitor: Visitor) -> Result<HttpResponse, Refusal> {
    page(visitor, LinkKind::SignIn).await
}

/// POST
pub(crate) async fn accept_invitation(visitor: Visitor, fields: Fields) -> Result<HttpResponse, Refusal> {
    set(visitor, fields, LinkKind::Invitation).await
}

/// POST
pub(crate) async fn accept_reset(visitor: Visitor, fields: Fields) -> Result<HttpResponse, Refusal> {
    set(visitor, fields, LinkKind::PasswordReset).await
}

/// POST
pub(crate) async fn accept_sign_in(visitor: Visitor, _fields: Fields) -> Result<HttpResponse, Refusal> {
    let visit = &visitor.visit;
    let secret = BrowserSecret::from_random(&visit.panel.randomness.secret());
    let sessions = (secret.hash(), Some(visitor.browser.hash()));
    let input = (hash(visit), sessions, visit.client);
    let entered = change(&visit.panel, input, |transaction, _, input| {
        let (link, sessions, address) = *input;
        let now = transaction.now();
        Box::pin(sign_in_by_link(transaction, link, sessions, address, now))
    });
    entered.await?.map_err(|_| Refusal::DeadLink)?;
    into_panel(visit, &secret, &Next::default())
}

async fn page(visitor: Visitor, kind: LinkKind) -> Result<HttpResponse, Refusal> {
    let seller = living(&visitor.visit, kind).await?;
    shown(&visitor, kind, seller, Issues::none(), StatusCode::OK)
}

async fn set(visitor: Visitor, fields: Fields, kind: LinkKind) -> Result<HttpResponse, Refusal> {
    let visit = &visitor.visit;
    let seller = living(visit, kind).await?;
    let password = match NewPassword::new(fields.text("password"), &seller.email) {
        Ok(password) => password,
        Err(reason) => {
            let mut violations = Violations::new();
            violations.add("password", reason);
            let issues = Issues::of(&violations, visit.language.texts());
            return shown(&visitor, kind, seller, issues, StatusCode::UNPROCESSABLE_ENTITY);
        }
    };
    let password = visit.panel.passwords.hash(password.reveal()).await?;
    let input = ((hash(visit), kind), password, visit.client);
    let set = change(
        &visit.panel,
        input,
        |transaction, _, (link, password, address)| {
            Box::pin(set_password(transaction, *link, password.clone(), *address))
        },
    );
    set.await?.map_err(|_| Refusal::DeadLink)?;
    see_other(&Done::PasswordSet.on("/panel/sign-in"))
}

fn hash(visit: &Visit) -> SecretHash {
    SecretHash::of(&visit.parameter)
}

/// Whose link it is, while it can be used.
async fn living(visit: &Visit, kind: LinkKind) -> Result<Seller, Refusal> {
    let found = visit.panel.panel.link(hash(visit)).await?;
    match found.filter(|(link, seller)| link.kind == kind && seller.closed_at.is_none()) {
        Some((_, seller)) => Ok(seller),
        None => Err(Refusal::DeadLink),
    }
}

fn shown(
    visitor: &Visitor,
    kind: LinkKind,
    seller: Seller,
    issues: Issues,
    status: StatusCode,
) -> Result<HttpResponse, Refusal> {
    let (title, lead, submit) = said(kind, visitor.visit.language.texts());
    let template = Page {
        frame: Frame::of_visitor(visitor, title),
        issues,
        lead,
        action: visitor.visit.path.clone(),
        submit,
        asks_password: kind != LinkKind::SignIn,
        seller,
    };
    crate::reply::page(status, &template)
}

/// Title, lead and button.
const fn said(kind: LinkKind, t: &Texts) -> (&'static str, &'static str, &'static str) {
    let t = &t.links;
    match kind {
        LinkKind::Invitation => (t.invitation_title, t.invitation_lead, t.set_submit),
        LinkKind::PasswordReset => (t.reset_title, t.reset_lead, t.set_submit),
        LinkKind::SignIn => (t.sign_in_title, t.sign_in_lead, t.sign_in_submit),
    }
}
