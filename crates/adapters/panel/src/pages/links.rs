//! One-time links: invitation, new password, signing in. GET shows a form and does not use the link up, so that a mail scanner does no harm
//! (D131).

use accounts::{LinkKind, NewPassword, Seller};
use actix_web::HttpResponse;
use askama::Template;
use kernel::Violations;
use oauth::{BrowserSecret, SecretHash};
use usecases::account_links::{set_password, sign_in_by_link};

use super::sign_in::into_panel;
use super::{done, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::refusal::Refusal;
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "link.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    lead: &'static str,
    /// The path of this page.
    action: String,
    submit: &'static str,
    asks_password: bool,
    seller: Seller,
}

pub(crate) async fn invitation(visit: Visit) -> Result<HttpResponse, Refusal> {
    page(visit, LinkKind::Invitation).await
}

pub(crate) async fn reset(visit: Visit) -> Result<HttpResponse, Refusal> {
    page(visit, LinkKind::PasswordReset).await
}

pub(crate) async fn sign_in(visit: Visit) -> Result<HttpResponse, Refusal> {
    page(visit, LinkKind::SignIn).await
}

pub(crate) async fn accept_invitation(visit: Visit) -> Result<HttpResponse, Refusal> {
    set(visit, LinkKind::Invitation).await
}

pub(crate) async fn accept_reset(visit: Visit) -> Result<HttpResponse, Refusal> {
    set(visit, LinkKind::PasswordReset).await
}

pub(crate) async fn accept_sign_in(visit: Visit) -> Result<HttpResponse, Refusal> {
    let secret = BrowserSecret::from_random(&visit.panel.randomness.secret());
    let sessions = (secret.hash(), Some(visit.browser.hash()));
    let input = (hash(&visit), sessions, visit.client);
    let entered = visit.change(input, |tx, _, (link, sessions, address)| {
        let now = tx.now();
        Box::pin(sign_in_by_link(tx, *link, *sessions, *address, now))
    });
    entered.await?.map_err(|_| Refusal::DeadLink)?;
    into_panel(&visit, &secret, &Next::default())
}

async fn page(visit: Visit, kind: LinkKind) -> Result<HttpResponse, Refusal> {
    let seller = living(&visit, kind).await?;
    shown(&visit, kind, seller, Issues::none())
}

async fn set(visit: Visit, kind: LinkKind) -> Result<HttpResponse, Refusal> {
    let seller = living(&visit, kind).await?;
    let mut violations = Violations::new();
    let password = NewPassword::new(visit.fields.text("password"), &seller.email);
    let Some(password) = violations.take("password", password) else {
        let issues = Issues::of(&violations, visit.texts());
        return shown(&visit, kind, seller, issues);
    };
    let password = visit.panel.passwords.hash(password.reveal()).await?;
    let input = ((hash(&visit), kind), password, visit.client);
    let set = visit.change(input, |tx, _, (link, password, address)| {
        Box::pin(set_password(tx, *link, password.clone(), *address))
    });
    set.await?.map_err(|_| Refusal::DeadLink)?;
    done("password-set", "/panel/sign-in")
}

fn hash(visit: &Visit) -> SecretHash {
    SecretHash::of(&visit.parameter)
}

/// The seller of a link that is still valid.
async fn living(visit: &Visit, kind: LinkKind) -> Result<Seller, Refusal> {
    let found = visit.panel.panel.link(hash(visit)).await?;
    let found = found.filter(|(link, seller)| link.kind == kind && seller.closed_at.is_none());
    found.map(|(_, seller)| seller).ok_or(Refusal::DeadLink)
}

fn shown(visit: &Visit, kind: LinkKind, seller: Seller, issues: Issues) -> Result<HttpResponse, Refusal> {
    let t = &visit.texts().links;
    let (title, lead, submit) = match kind {
        LinkKind::Invitation => (t.invitation_title, t.invitation_lead, t.set_submit),
        LinkKind::PasswordReset => (t.reset_title, t.reset_lead, t.set_submit),
        LinkKind::SignIn => (t.sign_in_title, t.sign_in_lead, t.sign_in_submit),
    };
    let template = Page {
        frame: visit.frame(title),
        issues,
        lead,
        action: visit.path.clone(),
        submit,
        asks_password: kind != LinkKind::SignIn,
        seller,
    };
    html(template.issues.status, &template)
}
