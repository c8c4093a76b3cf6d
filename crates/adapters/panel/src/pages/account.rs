//! `/panel/account`: change the password, sign out everywhere.

use accounts::{NewPassword, Seller};
use askama::Template;
use futures_util::TryFutureExt as _;
use kernel::BrokenRules;
use usecases::account_links::{self, LinkRefusal};
use uuid::Uuid;

use super::sign_in::limit_attempts;
use super::{done, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

const ACCOUNT: &str = "/panel/account";

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    issues: Issues,
    seller: Seller,
    has_password: bool,
    /// The password form's one-time number.
    number: Uuid,
}

pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    render(&request, Issues::none()).await
}

/// POST: changes the password.
pub(crate) async fn change_password(request: SignedInRequest) -> PageResult {
    let (panel, t) = (&request.panel, request.texts());
    let form = request.form()?;
    limit_attempts(&request, &request.seller().email).await?;
    let place = request.panel.places.password(request.client)?;
    let given = request.fields.get("current_password");
    let current = panel.accounts.password(request.seller().id).await?;
    let fits = panel.passwords.verify(given, current.clone()).await?;
    let wrong = || Issues::one("current_password", t.passwords.current_wrong);
    let mut issues = if fits { Issues::none() } else { wrong() };
    let mut violations = BrokenRules::default();
    let new = NewPassword::new(request.fields.text("new_password"), &request.seller().email);
    let new = violations.check("new_password", new);
    issues.append(&violations, t);
    let is_same = fits && new.as_ref().is_some_and(|new| new.reveal() == given);
    if is_same {
        issues.add("new_password", t.passwords.unchanged);
    }
    let Some(new) = new.filter(|_| !is_same) else {
        return render(&request, issues).await;
    };
    let change = match current.filter(|_| fits) {
        Some(compared) => Some((compared, panel.passwords.hash(new.reveal()).await?)),
        None => None,
    };
    drop(place);
    let input = (request.acting(), request.session(), change);
    let changed = request.change_once(form, ACCOUNT, input, |tx, _, (by, session, change)| {
        let changed = account_links::change_password(tx, *by, *session, change.as_ref());
        Box::pin(changed.map_ok(|()| None))
    });
    match changed.await? {
        Ok(()) => done("password-changed", ACCOUNT),
        Err(LinkRefusal::SessionEnded) => Err(PageError::SignedOut(Next::default())),
        Err(LinkRefusal::WrongPassword) => render(&request, wrong()).await,
        Err(LinkRefusal::DeadLink | LinkRefusal::Account(_)) => Err(PageError::NotFound),
    }
}

async fn render(request: &SignedInRequest, issues: Issues) -> PageResult {
    let password = request.panel.accounts.password(request.seller().id).await?;
    let template = AccountPage {
        frame: request.frame(request.texts().frame.account),
        issues,
        seller: request.seller().clone(),
        has_password: password.is_some(),
        number: request.panel.ports.randomness.uuid(),
    };
    html(template.issues.status, &template)
}
