//! `/panel/account`: the password, and signing out everywhere.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::Violations;
use oauth::{NewPassword, PasswordHash, Seller};
use usecases::account_links;

use super::sign_in::keep_pace;
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "account.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    seller: Seller,
    has_password: bool,
}

/// GET
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    shown(&member, Issues::none(), StatusCode::OK).await
}

/// POST: changes the password.
pub(crate) async fn change_password(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let panel = &member.visit.panel;
    let t = member.visit.language.texts();
    keep_pace(&member.visit, &member.seller().email).await?;
    let mut violations = Violations::new();
    let new = NewPassword::new(fields.text("new_password"), &member.seller().email);
    let new = violations.take("new_password", new);
    let current = panel.panel.password(member.seller().id).await?;
    let fits = panel
        .passwords
        .verify(fields.get("current_password"), current.clone())
        .await?;
    let compared = current.filter(|_| fits);
    let mut issues = Issues::none();
    if compared.is_none() {
        issues.add("current_password", t.passwords.current_wrong);
    }
    issues.append(Issues::of(&violations, t));
    if new
        .as_ref()
        .is_some_and(|new| new.reveal() == fields.get("current_password"))
    {
        issues.add("new_password", t.passwords.unchanged);
    }
    let (new, compared) = match (new, compared) {
        (Some(new), Some(compared)) if !issues.any() => (new, compared),
        _ => return shown(&member, issues, StatusCode::UNPROCESSABLE_ENTITY).await,
    };
    match replace(&member, compared, &new).await? {
        Ok(()) => see_other(&Done::PasswordChanged.on("/panel/account")),
        Err(account_links::Refusal::SessionEnded) => Err(Refusal::SignIn(Next::default())),
        Err(account_links::Refusal::PasswordReplaced) => {
            let issues = Issues::one("current_password", t.passwords.current_wrong);
            shown(&member, issues, StatusCode::UNPROCESSABLE_ENTITY).await
        }
        Err(_) => Err(Refusal::NotFound),
    }
}

/// Puts a new password in the place of the one that was compared.
async fn replace(
    member: &Member,
    compared: PasswordHash,
    new: &NewPassword,
) -> Result<Result<(), account_links::Refusal>, Refusal> {
    let panel = &member.visit.panel;
    let hash = panel.passwords.hash(new.reveal()).await?;
    let input = ((member.acting(), member.session()), compared, hash);
    let changed = change(panel, input, |transaction, _, (acting, compared, hash)| {
        let passwords = (compared, hash.clone());
        Box::pin(account_links::change_password(transaction, *acting, passwords))
    });
    changed.await
}

async fn shown(member: &Member, issues: Issues, status: StatusCode) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let password = member.visit.panel.panel.password(member.seller().id).await?;
    let template = Page {
        frame: Frame::of_member(member, t.passwords.account_title).noting(&member.visit),
        issues,
        seller: member.seller().clone(),
        has_password: password.is_some(),
    };
    crate::reply::page(status, &template)
}
