//! `/panel/sign-in`

use std::time::Duration;

use accounts::{Action, PasswordHash};
use askama::Template;
use kernel::SellerId;
use oauth::BrowserSecret;
use usecases::Acting as _;
use usecases::authorize::open_ticket;
use usecases::sign_in::{NewSession, PasswordCheck, check_password, count_attempt, open_session};
use web::meters;

use super::{page as html, see_other};
use crate::browser;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::page_error::{PageError, PageResult};
use crate::page_request::PageRequest;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    issues: Issues,
    next: Next,
    email: String,
}

/// GET: a seller who is already signed in is redirected at once, except after setting a password, which may be
/// another account's.
pub(crate) async fn page(request: PageRequest) -> PageResult {
    let next = Next::of(&request.query);
    let is_notified = request.query.get("done") == Some("password-set");
    match request.panel.accounts.signed_in(request.browser.hash()).await? {
        Some(_) if !is_notified => see_other(&next.path()),
        _ => render(&request, next, String::new(), Issues::none()),
    }
}

/// POST: signs in.
pub(crate) async fn submit(mut request: PageRequest) -> PageResult {
    let next = Next::of(request.fields.form());
    let email = request.fields.get("email").trim().to_owned();
    limit_attempts(&request, &email).await?;
    let place = request.panel.places.password(request.client)?;
    let (accounts, passwords) = (request.panel.accounts.as_ref(), request.panel.passwords.as_ref());
    let checked = check_password(accounts, passwords, &email, request.fields.get("password")).await?;
    drop(place);
    let issues = Issues::one("password", request.texts().sign_in.wrong);
    match checked {
        PasswordCheck::Right(seller, hash) => {
            request.seller = Some(seller);
            match start_session(&request, seller, hash).await? {
                Some(secret) => redirect_signed_in(&request, seller, &secret, &next),
                None => render(&request, next, email, issues),
            }
        }
        PasswordCheck::Wrong(known) => {
            let answer = render(&request, next, email, issues);
            if let Some(seller) = known {
                record_failure(request, seller);
            }
            answer
        }
    }
}

/// Counts an attempt to sign in or to change a password, and delays it if required.
pub(super) async fn limit_attempts(request: &PageRequest, email: &str) -> PageResult<()> {
    let limits = request.panel.settings.attempts;
    let delay = count_attempt(request.panel.rates.as_ref(), request.client, email, limits).await?;
    let decision = match delay {
        Err(_) => "refused",
        Ok(Duration::ZERO) => "admitted",
        Ok(_) => "delayed",
    };
    meters::count_decision("sign_in", decision);
    match delay.map_err(PageError::TooMany)? {
        Duration::ZERO => {}
        wait => tokio::time::sleep(wait).await,
    }
    Ok(())
}

/// Opens a session under a new secret. `None` if the account was closed or its password changed in the
/// meantime.
async fn start_session(
    request: &PageRequest,
    seller: SellerId,
    compared: PasswordHash,
) -> PageResult<Option<BrowserSecret>> {
    let secret = BrowserSecret::from_random(&request.panel.ports.randomness.secret());
    let new = NewSession {
        by: request.acting_for(seller),
        session: secret.hash(),
        earlier: request.browser.hash(),
    };
    let opened = request.store((new, compared), |tx, _, (new, compared)| {
        Box::pin(open_session(tx, *new, compared, tx.now()))
    });
    Ok(opened.await?.then_some(secret))
}

/// Gives the browser its new secret and redirects to the next page. The access log names the seller, an
/// extension of the response.
pub(super) fn redirect_signed_in(
    request: &PageRequest,
    seller: SellerId,
    secret: &BrowserSecret,
    next: &Next,
) -> PageResult {
    let mut response = see_other(&next.path())?;
    let https = request.panel.ports.service.is_https();
    browser::set_browser(response.headers_mut(), secret, true, https);
    response.extensions_mut().insert(seller);
    Ok(response)
}

/// Logs a wrong password of an existing account in the background: the response takes as long as for an
/// unknown account.
fn record_failure(request: PageRequest, seller: SellerId) {
    let tasks = request.panel.ports.tasks.clone();
    drop(tasks.run(async move {
        let noted = request.store(request.acting_for(seller), |tx, _, by| {
            Box::pin(by.log(tx, Action::SignInFailed, by.seller))
        });
        if let Err(error) = noted.await {
            let what = "a failed sign-in was not written to the audit log";
            error.log(&request.trace_id, what);
        }
    }));
}

fn render(request: &PageRequest, next: Next, email: String, issues: Issues) -> PageResult {
    let handle = next.request.as_deref();
    let ticket = handle.and_then(|handle| open_ticket(request.panel.sealer.as_ref(), handle).ok());
    let template = SignInPage {
        frame: Frame {
            notice: request.notice(),
            // After a mistake, too, it leads to the target.
            switch: request.in_other_language_at(&next.sign_in()),
            ..request.frame(request.texts().sign_in.title)
        },
        issues,
        next,
        email,
    };
    let mut response = html(template.issues.status, &template)?;
    // A consent request that this account cannot grant is refused at once, by a redirect in answer to this
    // page's form.
    if let Some(ticket) = ticket {
        browser::allow_form_redirect_to(&mut response, &ticket.request.redirect_uri);
    }
    Ok(response)
}
