//! `/panel/account`: change the password, sign out everywhere.

use accounts::{NewPassword, PasswordHash, Seller};
use actix_web::HttpResponse;
use askama::Template;
use kernel::BrokenRules;
use usecases::account_links;

use super::sign_in::{limit_attempts, take_place};
use super::{done, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::page_error::PageError;
use crate::page_request::SignedInRequest;
use crate::places::PasswordPlace;

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    issues: Issues,
    seller: Seller,
    has_password: bool,
}

pub(crate) async fn page(request: SignedInRequest) -> Result<HttpResponse, PageError> {
    render(&request, Issues::none()).await
}

/// POST: changes the password.
pub(crate) async fn change_password(request: SignedInRequest) -> Result<HttpResponse, PageError> {
    let (panel, t) = (&request.panel, request.texts());
    limit_attempts(&request, &request.seller().email).await?;
    let place = take_place(&request)?;
    let given = request.fields.get("current_password");
    let current = panel.panel.password(request.seller().id).await?;
    let fits = panel.passwords.verify(given, current.clone()).await?;
    if !fits && is_set(&request).await? {
        return done("password-changed", "/panel/account");
    }
    let compared = current.filter(|_| fits);
    let mut issues = Issues::none();
    if compared.is_none() {
        issues.add("current_password", t.passwords.current_wrong);
    }
    let mut violations = BrokenRules::new();
    let new = NewPassword::new(request.fields.text("new_password"), &request.seller().email);
    let new = violations.check("new_password", new);
    issues.append(&violations, t);
    if new.as_ref().is_some_and(|new| new.reveal() == given) {
        issues.add("new_password", t.passwords.unchanged);
    }
    let (new, compared) = match (new, compared) {
        (Some(new), Some(compared)) if !issues.any() => (new, compared),
        _ => return render(&request, issues).await,
    };
    match replace(&request, compared, &new, place).await? {
        Ok(()) => done("password-changed", "/panel/account"),
        Err(account_links::Refusal::SessionEnded) => Err(PageError::SignedOut(Next::default())),
        Err(account_links::Refusal::PasswordReplaced) => {
            let _place = take_place(&request)?;
            if is_set(&request).await? {
                return done("password-changed", "/panel/account");
            }
            let issues = Issues::one("current_password", t.passwords.current_wrong);
            render(&request, issues).await
        }
        Err(_) => Err(PageError::NotFound),
    }
}

/// Whether the new password is the account's: after a double click, the first request has set it.
async fn is_set(request: &SignedInRequest) -> Result<bool, PageError> {
    let stored = request.panel.panel.password(request.seller().id).await?;
    let new = request.fields.get("new_password");
    Ok(request.panel.passwords.verify(new, stored).await?)
}

/// Replaces the password that was just compared with a new one.
async fn replace(
    request: &SignedInRequest,
    compared: PasswordHash,
    new: &NewPassword,
    place: PasswordPlace,
) -> Result<Result<(), account_links::Refusal>, PageError> {
    let hash = request.panel.passwords.hash(new.reveal()).await?;
    drop(place);
    let input = (request.acting(), request.session(), compared, hash);
    let changed = request.change(input, |tx, _, (by, session, compared, hash)| {
        Box::pin(account_links::change_password(
            tx,
            *by,
            *session,
            compared,
            hash.clone(),
        ))
    });
    changed.await
}

async fn render(request: &SignedInRequest, issues: Issues) -> Result<HttpResponse, PageError> {
    let password = request.panel.panel.password(request.seller().id).await?;
    let template = AccountPage {
        frame: request.frame(request.texts().frame.account),
        issues,
        seller: request.seller().clone(),
        has_password: password.is_some(),
    };
    html(template.issues.status, &template)
}
