//! `/panel/sign-out` and `/panel/sign-out-everywhere`

use std::convert::Infallible;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use usecases::Failure;
use usecases::sign_in::{sign_out, sign_out_everywhere};

use crate::browser::forget_browser;
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::notice::Done;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "sign_out.html")]
struct Page {
    frame: Frame,
}

/// GET: asks, since a link that others can make must not sign anybody out.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let frame = Frame::of_member(&member, member.visit.language.texts().sign_out.title);
    crate::reply::page(StatusCode::OK, &Page { frame })
}

/// POST
pub(crate) async fn sent(member: Member, _fields: Fields) -> Result<HttpResponse, Refusal> {
    end(&member).await?;
    left(&member, &Done::SignedOut.on("/panel/sign-in"))
}

/// POST
pub(crate) async fn everywhere(member: Member, _fields: Fields) -> Result<HttpResponse, Refusal> {
    let ended = change(&member.visit.panel, member.acting(), |transaction, _, by| {
        Box::pin(async move {
            sign_out_everywhere(transaction, *by).await?;
            Ok::<_, Failure<Infallible>>(())
        })
    });
    ended.await.map(drop)?;
    left(&member, &Done::SignedOutEverywhere.on("/panel/sign-in"))
}

/// Ends this session.
pub(super) async fn end(member: &Member) -> Result<(), Refusal> {
    let input = (member.acting(), member.session());
    let ended = change(&member.visit.panel, input, |transaction, _, (by, session)| {
        Box::pin(async move {
            sign_out(transaction, *by, *session).await?;
            Ok::<_, Failure<Infallible>>(())
        })
    });
    ended.await.map(drop)
}

/// The way out, without the cookie.
pub(super) fn left(member: &Member, location: &str) -> Result<HttpResponse, Refusal> {
    let mut response = see_other(location)?;
    forget_browser(response.headers_mut(), member.visit.panel.settings.https());
    Ok(response)
}
