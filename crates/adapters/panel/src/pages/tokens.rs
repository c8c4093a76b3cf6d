//! `/panel/tokens`: personal tokens.

use accounts::{NewPersonalToken, PersonalToken, Rule};
use askama::Template;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use futures_util::TryFutureExt as _;
use oauth::FamilyId;
use usecases::personal_tokens::{PersonalTokenRefusal, issue_personal_token, revoke_personal_token};
use usecases::shown_once::ShownSecret;
use uuid::Uuid;

use super::{ScopeBoxes, done, once, page as html, scope_options};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

const LIST: &str = "/panel/tokens";

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    frame: Frame,
    issues: Issues,
    tokens: Vec<PersonalToken>,
    number: Uuid,
    given_name: String,
    expires_at: String,
    scopes: ScopeBoxes,
}

pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let number = request.panel.ports.randomness.uuid();
    render(&request, number, Issues::none()).await
}

/// POST: makes a token, and redirects to the page that shows it.
pub(crate) async fn issue(request: SignedInRequest) -> PageResult {
    let (form, t) = (request.form()?, request.texts());
    let Ok(expires_at) = end_of_day(request.fields.get("expires_at")) else {
        let issues = Issues::one("expires_at", t.tokens.not_a_day);
        return render(&request, form.number, issues).await;
    };
    let (name, scopes) = (request.fields.text("name"), request.fields.scopes());
    let new = match NewPersonalToken::check(name, &scopes, expires_at) {
        Ok(new) => new,
        Err(violations) => return render(&request, form.number, Issues::of(&violations, t)).await,
    };
    let input = (request.acting(), new);
    let outcome = request.change_once(form, &request.path, input, |tx, panel, (by, new)| {
        let (randomness, new) = (panel.ports.randomness.as_ref(), new.clone());
        let issued = issue_personal_token(tx, tx, randomness, *by, by.seller, new, tx.now());
        Box::pin(issued.map_ok(|token| {
            let id = token.key().family.uuid();
            Some(ShownSecret::Token(id, token.reveal().to_owned()))
        }))
    });
    let issues = match outcome.await? {
        Ok(()) => return once::redirect(form),
        Err(PersonalTokenRefusal::Account(_) | PersonalTokenRefusal::NoSuchToken) => {
            return Err(PageError::NotFound);
        }
        Err(PersonalTokenRefusal::Expired) => Issues::one("expires_at", &t.rule(&Rule::FutureExpiry)),
        Err(PersonalTokenRefusal::TooMany) => Issues::conflict("main", t.tokens.too_many),
        Err(PersonalTokenRefusal::Suspended) => Issues::conflict("main", t.tokens.suspended),
    };
    render(&request, form.number, issues).await
}

pub(crate) async fn revoke(request: SignedInRequest) -> PageResult {
    let (form, input) = (request.form()?, (request.acting(), request.id::<FamilyId>()?));
    let revoked = request.change_once(form, LIST, input, |tx, _, (by, id)| {
        let revoked = revoke_personal_token(tx, *by, by.seller, *id);
        Box::pin(revoked.map_ok(|()| None))
    });
    revoked.await?.map_err(|_| PageError::NotFound)?;
    done("revoked", LIST)
}

/// The end of a day, in UTC; `None` for an empty text.
fn end_of_day(text: &str) -> Result<Option<DateTime<Utc>>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let day: NaiveDate = text.parse().map_err(|_| ())?;
    let end = day.checked_add_days(Days::new(1)).ok_or(())?;
    Ok(Some(end.and_time(NaiveTime::MIN).and_utc()))
}

/// The page, with the values of the submitted form.
async fn render(request: &SignedInRequest, number: Uuid, issues: Issues) -> PageResult {
    let tokens = request.panel.accounts.personal_tokens(request.seller().id);
    let template = TokensPage {
        frame: request.frame(request.texts().frame.tokens),
        issues,
        tokens: tokens.await?,
        number,
        scopes: scope_options(&request.fields.scopes()),
        given_name: request.fields.text("name"),
        expires_at: request.fields.text("expires_at"),
    };
    html(template.issues.status, &template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_through_its_last_day() {
        let end = end_of_day("2027-01-31").unwrap().unwrap();
        assert_eq!(end.to_rfc3339(), "2027-02-01T00:00:00+00:00");
        assert_eq!(end_of_day(""), Ok(None));
        for odd in ["tomorrow", "2027-02-30", "31.01.2027"] {
            assert_eq!(end_of_day(odd), Err(()), "{odd}");
        }
    }
}
