//! `/panel/sign-in`

use std::time::Duration;

use accounts::{PasswordHash, Seller};
use actix_web::HttpResponse;
use askama::Template;
use kernel::SellerId;
use oauth::BrowserSecret;
use usecases::authorize::open_ticket;
use usecases::sign_in::{Checked, Opening, Pace, check, is_still_right, note_failure, open_session, pace};
use web::meters;

use super::{page as html, see_other};
use crate::browser;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::refusal::Refusal;
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    next: Next,
    email: String,
}

/// GET: a seller who is already signed in is redirected at once.
pub(crate) async fn page(visit: Visit) -> Result<HttpResponse, Refusal> {
    let next = Next::of(&visit.query);
    match visit.panel.panel.signed_in(visit.browser.hash()).await? {
        Some(_) => see_other(&next.path()),
        None => shown(&visit, next, String::new(), Issues::none()),
    }
}

/// POST: signs in.
pub(crate) async fn sent(visit: Visit) -> Result<HttpResponse, Refusal> {
    let next = Next::of(visit.fields.form());
    let email = visit.fields.get("email").trim().to_owned();
    keep_pace(&visit, &email).await?;
    let (accounts, passwords) = (visit.panel.panel.as_ref(), visit.panel.passwords.as_ref());
    let checked = check(accounts, passwords, &email, visit.fields.get("password")).await?;
    let issues = Issues::one("password", visit.texts().sign_in.wrong);
    match checked {
        Checked::Right(seller, hash) => match enter(&visit, &seller, &hash).await? {
            Some(secret) => into_panel(&visit, &secret, &next),
            None => shown(&visit, next, email, issues),
        },
        Checked::Wrong(known) => {
            let answer = shown(&visit, next, email, issues);
            if let Some(seller) = known {
                note(visit, seller);
            }
            answer
        }
    }
}

/// Counts an attempt to sign in or to change a password, and delays it if required.
pub(super) async fn keep_pace(visit: &Visit, email: &str) -> Result<(), Refusal> {
    let limits = visit.panel.settings.attempts;
    let pace = pace(visit.panel.rates.as_ref(), (visit.client, email), limits).await?;
    let (decision, waited) = match pace {
        Pace::Refused(quota) => ("refused", Err(Refusal::TooMany(quota))),
        Pace::After(Duration::ZERO) => ("admitted", Ok(Duration::ZERO)),
        Pace::After(wait) => ("delayed", Ok(wait)),
    };
    meters::count_decision("sign_in", decision);
    match waited? {
        Duration::ZERO => {}
        wait => tokio::time::sleep(wait).await,
    }
    Ok(())
}

/// Opens a session under a new secret. `None` if the account was closed or its password changed in the meantime.
async fn enter(
    visit: &Visit,
    seller: &Seller,
    compared: &PasswordHash,
) -> Result<Option<BrowserSecret>, Refusal> {
    let secret = BrowserSecret::from_random(&visit.panel.randomness.secret());
    let opening = Opening {
        by: visit.acting_for(seller.id),
        session: secret.hash(),
        earlier: Some(visit.browser.hash()),
    };
    let opened = visit.change(opening, |tx, _, opening| {
        let now = tx.now();
        Box::pin(open_session(tx, *opening, now))
    });
    if opened.await?.is_err() {
        return Ok(None);
    }
    if is_still_right(visit.panel.panel.as_ref(), seller.id, compared).await? {
        return Ok(Some(secret));
    }
    let ended = visit.store(secret.hash(), |tx, _, session| tx.end_session(*session));
    ended.await.map(|()| None)
}

/// Gives the browser its new secret and redirects to the next page.
pub(super) fn into_panel(
    visit: &Visit,
    secret: &BrowserSecret,
    next: &Next,
) -> Result<HttpResponse, Refusal> {
    let mut response = see_other(&next.path())?;
    let https = visit.panel.settings.https();
    browser::set_browser(response.headers_mut(), secret, true, https);
    Ok(response)
}

/// Notes a wrong password of an existing account in the background: the response takes as long as for an unknown account.
fn note(visit: Visit, seller: SellerId) {
    let tasks = visit.panel.tasks.clone();
    drop(tasks.run(async move {
        let noted = visit.store(visit.acting_for(seller), |tx, _, by| {
            Box::pin(note_failure(tx, *by))
        });
        if let Err(refusal) = noted.await {
            refusal.log(&visit.trace_id, "a wrong password was not noted");
        }
    }));
}

fn shown(visit: &Visit, next: Next, email: String, issues: Issues) -> Result<HttpResponse, Refusal> {
    let handle = next.request.as_deref();
    let ticket = handle.and_then(|handle| open_ticket(visit.panel.sealer.as_ref(), handle).ok());
    let template = Page {
        frame: visit.frame(visit.texts().sign_in.title),
        issues,
        next,
        email,
    };
    let mut response = html(template.issues.status, &template)?;
    // A consent request that this account cannot grant is refused at once, by a redirect in answer to this page's form.
    if let Some(ticket) = ticket {
        browser::let_forms_lead_to(&mut response, &ticket.request.redirect_uri);
    }
    Ok(response)
}
