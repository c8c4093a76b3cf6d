//! `/panel/tokens`: personal tokens.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use oauth::{FamilyId, PersonalToken, PersonalTokenRequest};
use usecases::own_tokens::{self, Refusal as Refused};
use usecases::sent_form::NumberUsed;
use usecases::shown_once::Sent;
use uuid::Uuid;

use super::once;
use super::scope_list::{Group, names, tickable};
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::Member;
use crate::when::When;

#[derive(Template)]
#[template(path = "tokens.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    tokens: Vec<Listed>,
    number: Uuid,
    given_name: String,
    expires_at: String,
    scopes: Vec<Group>,
}

struct Listed {
    id: FamilyId,
    name: String,
    scopes: Vec<String>,
    made: When,
    expires: Option<When>,
}

/// A form as it was filled in.
#[derive(Default)]
struct Filled {
    name: String,
    expires_at: String,
    scopes: Vec<String>,
}

/// GET
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let number = member.visit.panel.randomness.uuid();
    shown(&member, Filled::default(), number, Issues::none(), StatusCode::OK).await
}

/// POST: makes a token, and leads to where it is shown.
pub(crate) async fn issue(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let form = member.sent(&fields)?;
    let filled = Filled {
        name: fields.text("name"),
        expires_at: fields.text("expires_at"),
        scopes: fields.scopes(),
    };
    let t = member.visit.language.texts();
    let Ok(expires_at) = end_of_day(&filled.expires_at) else {
        let issues = Issues::one("expires_at", t.tokens.not_a_day);
        return shown(
            &member,
            filled,
            form.number,
            issues,
            StatusCode::UNPROCESSABLE_ENTITY,
        )
        .await;
    };
    let request = PersonalTokenRequest {
        name: filled.name.clone(),
        scopes: filled.scopes.clone(),
        expires_at,
    };
    let input = (member.acting(), form, request);
    let making = change(&member.visit.panel, input, |transaction, panel, input| {
        let (by, form, request) = input;
        let sent = Sent {
            form: *form,
            sealer: panel.sealer.as_ref(),
        };
        let (now, randomness) = (transaction.now(), panel.randomness.as_ref());
        Box::pin(own_tokens::issue(
            (transaction, transaction, transaction),
            randomness,
            (*by, sent),
            request.clone(),
            now,
        ))
    });
    match making.await? {
        Ok(()) | Err(Refused::Form(NumberUsed::BySame)) => once::lead(form),
        Err(Refused::Form(NumberUsed::ByOther)) => Err(Refusal::FormUsed(member.visit.path)),
        Err(Refused::Invalid(violations)) => {
            let issues = Issues::of(&violations, t);
            shown(
                &member,
                filled,
                form.number,
                issues,
                StatusCode::UNPROCESSABLE_ENTITY,
            )
            .await
        }
        Err(Refused::TooMany) => {
            let issues = Issues::one("name", t.tokens.too_many);
            shown(&member, filled, form.number, issues, StatusCode::CONFLICT).await
        }
        Err(Refused::SellerClosed | Refused::NoSuchToken) => Err(Refusal::NotFound),
    }
}

/// POST
pub(crate) async fn revoke(member: Member, _fields: Fields) -> Result<HttpResponse, Refusal> {
    let id: FamilyId = member.visit.parameter.parse().map_err(|_| Refusal::NotFound)?;
    let revoked = change(
        &member.visit.panel,
        (member.acting(), id),
        |transaction, _, (by, id)| Box::pin(own_tokens::revoke(transaction, *by, *id)),
    );
    revoked.await?.map_err(|_| Refusal::NotFound)?;
    see_other(&Done::Revoked.on("/panel/tokens"))
}

/// The end of a day, in UTC; nothing for nothing.
fn end_of_day(text: &str) -> Result<Option<DateTime<Utc>>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let day: NaiveDate = text.parse().map_err(|_| ())?;
    let next = day.checked_add_days(Days::new(1)).ok_or(())?;
    Ok(Some(next.and_time(NaiveTime::MIN).and_utc()))
}

async fn shown(
    member: &Member,
    filled: Filled,
    number: Uuid,
    issues: Issues,
    status: StatusCode,
) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let tokens = member
        .visit
        .panel
        .panel
        .personal_tokens(member.seller().id)
        .await?;
    let listed = |token: PersonalToken| Listed {
        id: token.id,
        name: token.name,
        scopes: names(token.scopes),
        made: When(token.created_at),
        expires: token.expires_at.map(When),
    };
    let template = Page {
        frame: Frame::of_member(member, t.tokens.title).noting(&member.visit),
        issues,
        tokens: tokens.into_iter().map(listed).collect(),
        number,
        scopes: tickable(&filled.scopes, t),
        given_name: filled.name,
        expires_at: filled.expires_at,
    };
    crate::reply::page(status, &template)
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
