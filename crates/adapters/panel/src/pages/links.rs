//! One-time links: invitation, new password, signing in. GET shows a form and does not use the link up, so
//! that a mail scanner does no harm (D131).

use accounts::{LinkKind, NewPassword, Seller};
use actix_web::HttpResponse;
use askama::Template;
use kernel::BrokenRules;
use oauth::{BrowserSecret, SecretHash};
use usecases::account_links::{set_password, sign_in_by_link};

use super::sign_in::{redirect_signed_in, take_place};
use super::{done, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::page_error::PageError;
use crate::page_request::PageRequest;

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    frame: Frame,
    issues: Issues,
    lead: &'static str,
    /// The path of this page.
    action: String,
    submit: &'static str,
    asks_password: bool,
    seller: Seller,
}

pub(crate) async fn invitation(request: PageRequest) -> Result<HttpResponse, PageError> {
    page(request, LinkKind::Invitation).await
}

pub(crate) async fn reset(request: PageRequest) -> Result<HttpResponse, PageError> {
    page(request, LinkKind::PasswordReset).await
}

pub(crate) async fn sign_in(request: PageRequest) -> Result<HttpResponse, PageError> {
    page(request, LinkKind::SignIn).await
}

pub(crate) async fn accept_invitation(request: PageRequest) -> Result<HttpResponse, PageError> {
    set(request, LinkKind::Invitation).await
}

pub(crate) async fn accept_reset(request: PageRequest) -> Result<HttpResponse, PageError> {
    set(request, LinkKind::PasswordReset).await
}

pub(crate) async fn accept_sign_in(request: PageRequest) -> Result<HttpResponse, PageError> {
    unexpired(&request, LinkKind::SignIn).await?;
    let secret = BrowserSecret::from_random(&request.panel.ports.randomness.secret());
    let input = (
        hash(&request),
        secret.hash(),
        request.browser.hash(),
        request.client,
    );
    let entered = request.change(input, |tx, _, (link, session, earlier, address)| {
        let now = tx.now();
        Box::pin(sign_in_by_link(
            tx,
            *link,
            *session,
            Some(*earlier),
            *address,
            now,
        ))
    });
    let seller = entered.await?.map_err(|_| PageError::DeadLink)?;
    redirect_signed_in(&request, seller, &secret, &Next::default())
}

async fn page(request: PageRequest, kind: LinkKind) -> Result<HttpResponse, PageError> {
    let seller = unexpired(&request, kind).await?;
    render(&request, kind, seller, Issues::none())
}

async fn set(request: PageRequest, kind: LinkKind) -> Result<HttpResponse, PageError> {
    let seller = unexpired(&request, kind).await?;
    let mut violations = BrokenRules::new();
    let password = NewPassword::new(request.fields.text("password"), &seller.email);
    let Some(password) = violations.check("password", password) else {
        let issues = Issues::of(&violations, request.texts());
        return render(&request, kind, seller, issues);
    };
    let place = take_place(&request)?;
    let password = request.panel.passwords.hash(password.reveal()).await?;
    drop(place);
    let input = (hash(&request), kind, password, request.client);
    let set = request.change(input, |tx, _, (link, kind, password, address)| {
        Box::pin(set_password(tx, *link, *kind, password.clone(), *address))
    });
    set.await?.map_err(|_| PageError::DeadLink)?;
    done("password-set", "/panel/sign-in")
}

fn hash(request: &PageRequest) -> SecretHash {
    SecretHash::of(&request.parameter)
}

/// The seller of a link that is still valid.
async fn unexpired(request: &PageRequest, kind: LinkKind) -> Result<Seller, PageError> {
    let found = request.panel.panel.link(hash(request)).await?;
    let found = found.filter(|(link, seller)| link.kind == kind && seller.closed_at.is_none());
    found.map(|(_, seller)| seller).ok_or(PageError::DeadLink)
}

fn render(
    request: &PageRequest,
    kind: LinkKind,
    seller: Seller,
    issues: Issues,
) -> Result<HttpResponse, PageError> {
    let t = &request.texts().links;
    let (title, lead, submit) = match kind {
        LinkKind::Invitation => (t.invitation_title, t.invitation_lead, t.set_submit),
        LinkKind::PasswordReset => (t.reset_title, t.reset_lead, t.set_submit),
        LinkKind::SignIn => (t.sign_in_title, t.sign_in_lead, t.sign_in_submit),
    };
    let template = LinkPage {
        frame: request.frame(title),
        issues,
        lead,
        action: request.path.clone(),
        submit,
        asks_password: kind != LinkKind::SignIn,
        seller,
    };
    html(template.issues.status, &template)
}
