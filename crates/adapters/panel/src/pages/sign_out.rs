//! `/panel/sign-out` and `/panel/sign-out-everywhere`

use actix_web::HttpResponse;
use askama::Template;
use usecases::sign_in::{sign_out, sign_out_everywhere};

use super::{ok, see_other};
use crate::browser::forget_browser;
use crate::frame::Frame;
use crate::refusal::Refusal;
use crate::visit::Member;

#[derive(Template)]
#[template(path = "sign_out.html")]
struct Page {
    frame: Frame,
}

/// GET: asks for confirmation, because a link made by others must not sign anybody out.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let frame = member.frame(member.texts().sign_out.title);
    ok(&Page { frame })
}

pub(crate) async fn sent(member: Member) -> Result<HttpResponse, Refusal> {
    end(&member).await?;
    left(&member, "/panel/sign-in?done=signed-out")
}

pub(crate) async fn everywhere(member: Member) -> Result<HttpResponse, Refusal> {
    let ended = member.store(member.acting(), |tx, _, by| {
        Box::pin(sign_out_everywhere(tx, *by))
    });
    ended.await?;
    left(&member, "/panel/sign-in?done=signed-out-everywhere")
}

/// Ends this session.
pub(super) async fn end(member: &Member) -> Result<(), Refusal> {
    let input = (member.acting(), member.session());
    let ended = member.store(input, |tx, _, (by, session)| {
        Box::pin(sign_out(tx, *by, *session))
    });
    ended.await
}

/// The redirect after signing out, which deletes the cookie.
pub(super) fn left(member: &Member, location: &str) -> Result<HttpResponse, Refusal> {
    let mut response = see_other(location)?;
    forget_browser(response.headers_mut(), member.panel.settings.https());
    Ok(response)
}
