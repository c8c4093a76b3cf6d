//! `/panel/sign-out` and `/panel/sign-out-everywhere`

use askama::Template;
use usecases::sign_in::sign_out;

use super::{ok, see_other};
use crate::browser::forget_browser;
use crate::frame::Frame;
use crate::page_error::PageResult;
use crate::page_request::{PageRequest, SignedInRequest};

#[derive(Template)]
#[template(path = "sign_out.html")]
struct SignOutPage {
    frame: Frame,
}

/// GET: asks for confirmation, because a link made by others must not sign anybody out.
pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let frame = request.frame(request.texts().sign_out.title);
    ok(&SignOutPage { frame })
}

pub(crate) async fn submit(request: SignedInRequest) -> PageResult {
    end(&request, false).await?;
    submitted(&request)
}

/// The answer to the form, also if the session had ended before.
pub(crate) fn submitted(request: &PageRequest) -> PageResult {
    signed_out(request, "/panel/sign-in?done=signed-out")
}

pub(crate) async fn everywhere(request: SignedInRequest) -> PageResult {
    end(&request, true).await?;
    signed_out(&request, "/panel/sign-in?done=signed-out-everywhere")
}

/// Ends this session, or all of the account.
pub(super) async fn end(request: &SignedInRequest, everywhere: bool) -> PageResult<()> {
    let input = (request.acting(), request.session(), everywhere);
    let ended = request.store(input, |tx, _, (by, session, everywhere)| {
        Box::pin(sign_out(tx, *by, *session, *everywhere))
    });
    ended.await
}

/// The redirect after signing out, which deletes the cookie.
pub(super) fn signed_out(request: &PageRequest, location: &str) -> PageResult {
    let mut response = see_other(location)?;
    forget_browser(response.headers_mut(), request.panel.ports.service.is_https());
    Ok(response)
}
