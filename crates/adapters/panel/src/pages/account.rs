//! `/panel/account`: change the password, sign out everywhere.

use accounts::{NewPassword, PasswordHash, Seller};
use actix_web::HttpResponse;
use askama::Template;
use kernel::Violations;
use usecases::account_links;

use super::sign_in::keep_pace;
use super::{done, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::refusal::Refusal;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "account.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    seller: Seller,
    has_password: bool,
}

pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    shown(&member, Issues::none()).await
}

/// POST: changes the password.
pub(crate) async fn change_password(member: Member) -> Result<HttpResponse, Refusal> {
    let (panel, t) = (&member.panel, member.texts());
    keep_pace(&member, &member.seller().email).await?;
    let given = member.fields.get("current_password");
    let current = panel.panel.password(member.seller().id).await?;
    let fits = panel.passwords.verify(given, current.clone()).await?;
    let compared = current.filter(|_| fits);
    let mut issues = Issues::none();
    if compared.is_none() {
        issues.add("current_password", t.passwords.current_wrong);
    }
    let mut violations = Violations::new();
    let new = NewPassword::new(member.fields.text("new_password"), &member.seller().email);
    let new = violations.take("new_password", new);
    issues.append(&violations, t);
    if new.as_ref().is_some_and(|new| new.reveal() == given) {
        issues.add("new_password", t.passwords.unchanged);
    }
    let (new, compared) = match (new, compared) {
        (Some(new), Some(compared)) if !issues.any() => (new, compared),
        _ => return shown(&member, issues).await,
    };
    match replace(&member, compared, &new).await? {
        Ok(()) => done("password-changed", "/panel/account"),
        Err(account_links::Refusal::SessionEnded) => Err(Refusal::SignIn(Next::default())),
        Err(account_links::Refusal::PasswordReplaced) => {
            let issues = Issues::one("current_password", t.passwords.current_wrong);
            shown(&member, issues).await
        }
        Err(_) => Err(Refusal::NotFound),
    }
}

/// Replaces the password that was just compared with a new one.
async fn replace(
    member: &Member,
    compared: PasswordHash,
    new: &NewPassword,
) -> Result<Result<(), account_links::Refusal>, Refusal> {
    let hash = member.panel.passwords.hash(new.reveal()).await?;
    let input = ((member.acting(), member.session()), compared, hash);
    let changed = member.change(input, |tx, _, (acting, compared, hash)| {
        let passwords = (compared, hash.clone());
        Box::pin(account_links::change_password(tx, *acting, passwords))
    });
    changed.await
}

async fn shown(member: &Member, issues: Issues) -> Result<HttpResponse, Refusal> {
    let password = member.panel.panel.password(member.seller().id).await?;
    let template = Page {
        frame: member.frame(member.texts().passwords.account_title),
        issues,
        seller: member.seller().clone(),
        has_password: password.is_some(),
    };
    html(template.issues.status, &template)
}
