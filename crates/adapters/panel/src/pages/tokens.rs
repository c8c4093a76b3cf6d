//! `/panel/tokens`: personal tokens.

use accounts::{PersonalToken, PersonalTokenRequest};
use actix_web::HttpResponse;
use askama::Template;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use oauth::FamilyId;
use usecases::personal_tokens::{self, PanelRefusal, Refusal as Refused};
use usecases::shown_once::NumberUsed;
use uuid::Uuid;

use super::scope_list::{Group, tickable};
use super::{done, once, page as html};
use crate::frame::Frame;
use crate::issues::Issues;
use crate::refusal::Refusal;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "tokens.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    tokens: Vec<PersonalToken>,
    number: Uuid,
    given_name: String,
    expires_at: String,
    scopes: [Group; 2],
}

pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let number = member.panel.randomness.uuid();
    shown(&member, number, Issues::none()).await
}

/// POST: makes a token, and redirects to the page that shows it.
pub(crate) async fn issue(member: Member) -> Result<HttpResponse, Refusal> {
    let (form, t) = (member.form()?, member.texts());
    let Ok(expires_at) = end_of_day(member.fields.get("expires_at")) else {
        let issues = Issues::one("expires_at", t.tokens.not_a_day);
        return shown(&member, form.number, issues).await;
    };
    let request = PersonalTokenRequest {
        name: member.fields.text("name"),
        scopes: member.fields.scopes(),
        expires_at,
    };
    let input = (member.acting(), form, request);
    let making = member.change(input, |tx, panel, (by, form, request)| {
        let (randomness, sent) = (panel.randomness.as_ref(), (*by, once::sent(panel, *form)));
        let request = request.clone();
        Box::pin(personal_tokens::issue_in_panel(
            (tx, tx, tx),
            randomness,
            sent,
            request,
            tx.now(),
        ))
    });
    let issues = match making.await? {
        Ok(()) | Err(PanelRefusal::Form(NumberUsed::BySame)) => return once::lead(form),
        Err(PanelRefusal::Form(NumberUsed::ByOther)) => return Err(Refusal::FormUsed(member.visit.path)),
        Err(PanelRefusal::Token(Refused::Account(_) | Refused::NoSuchToken)) => {
            return Err(Refusal::NotFound);
        }
        Err(PanelRefusal::Token(Refused::Invalid(violations))) => Issues::of(&violations, t),
        Err(PanelRefusal::Token(Refused::TooMany)) => Issues::conflict("name", t.tokens.too_many),
    };
    shown(&member, form.number, issues).await
}

pub(crate) async fn revoke(member: Member) -> Result<HttpResponse, Refusal> {
    let input = (member.acting(), member.id::<FamilyId>()?);
    let revoked = member.change(input, |tx, _, (by, id)| {
        Box::pin(personal_tokens::revoke_in_panel(tx, *by, *id))
    });
    revoked.await?.map_err(|_| Refusal::NotFound)?;
    done("revoked", "/panel/tokens")
}

/// The end of a day, in UTC; `None` for an empty text.
fn end_of_day(text: &str) -> Result<Option<DateTime<Utc>>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let day: NaiveDate = text.parse().map_err(|_| ())?;
    let next = day.checked_add_days(Days::new(1)).ok_or(())?;
    Ok(Some(next.and_time(NaiveTime::MIN).and_utc()))
}

/// The page, with the values of the submitted form.
async fn shown(member: &Member, number: Uuid, issues: Issues) -> Result<HttpResponse, Refusal> {
    let template = Page {
        frame: member.frame(member.texts().tokens.title),
        issues,
        tokens: member.panel.panel.personal_tokens(member.seller().id).await?,
        number,
        scopes: tickable(&member.fields.scopes()),
        given_name: member.fields.text("name"),
        expires_at: member.fields.text("expires_at"),
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
