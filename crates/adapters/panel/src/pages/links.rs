//! One-time links: invitation, new password, signing in. GET shows a form and does not use the link up, so
//! that a mail scanner does no harm (D131).

use accounts::{LinkKind, NewPassword, Seller};
use askama::Template;
use kernel::BrokenRules;
use oauth::{BrowserSecret, SecretHash};
use usecases::account_links::{set_password, sign_in_by_link};
use web::path::is_under;

use super::sign_in::redirect_signed_in;
use super::{done, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::page_error::{PageError, PageResult};
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

pub(crate) async fn page(request: PageRequest) -> PageResult {
    let (kind, seller) = unexpired(&request).await?;
    render(&request, kind, seller, Issues::none())
}

pub(crate) async fn accept_sign_in(mut request: PageRequest) -> PageResult {
    let (_, seller) = unexpired(&request).await?;
    request.seller = Some(seller.id);
    let secret = BrowserSecret::from_random(&request.panel.ports.randomness.secret());
    let (link, earlier) = (hash(&request), request.browser.hash());
    let input = (link, secret.hash(), earlier, request.client);
    let entered = request.change(input, |tx, _, (link, session, earlier, address)| {
        Box::pin(sign_in_by_link(tx, *link, *session, *earlier, *address, tx.now()))
    });
    let seller = entered.await?.map_err(|_| PageError::DeadLink)?;
    redirect_signed_in(&request, seller, &secret, &Next::default())
}

pub(crate) async fn accept_password(mut request: PageRequest) -> PageResult {
    let (kind, seller) = unexpired(&request).await?;
    request.seller = Some(seller.id);
    let mut violations = BrokenRules::default();
    let password = NewPassword::new(request.fields.text("password"), &seller.email);
    let Some(password) = violations.check("password", password) else {
        let issues = Issues::of(&violations, request.texts());
        return render(&request, kind, seller, issues);
    };
    let place = request.panel.places.password(request.client)?;
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

/// The kind and the seller of a link that is still valid. A link works only under its kind's path.
async fn unexpired(request: &PageRequest) -> PageResult<(LinkKind, Seller)> {
    // Anybody can invent links, and their look-ups share the strangers' connections with those of sign-ins.
    let _place = request.panel.places.link_lookup(request.client)?;
    let found = request.panel.accounts.link(hash(request)).await?;
    let found = found.map(|(link, seller)| (link.kind, seller));
    let is_here = |kind: LinkKind| is_under(&request.path, &format!("/panel/{}", kind.as_str()));
    let valid = found.filter(|(kind, seller)| is_here(*kind) && seller.closed_at.is_none());
    valid.ok_or(PageError::DeadLink)
}

fn render(request: &PageRequest, kind: LinkKind, seller: Seller, issues: Issues) -> PageResult {
    let (t, sign_in) = (&request.texts().links, &request.texts().sign_in);
    let (title, lead, submit) = match kind {
        LinkKind::Invitation => (t.invitation_title, t.invitation_lead, t.set_submit),
        LinkKind::PasswordReset => (t.reset_title, t.reset_lead, t.set_submit),
        LinkKind::SignIn => (sign_in.title, t.sign_in_lead, sign_in.submit),
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
