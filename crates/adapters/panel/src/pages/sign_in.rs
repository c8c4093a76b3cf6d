//! `/panel/sign-in`

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::SellerId;
use oauth::{BrowserSecret, PasswordHash, SecretHash, Seller};
use usecases::sign_in::{Checked, Opening, Pace, check, is_still_right, note_failure, open_session, pace};
use usecases::{ActingSeller, consent_ticket};

use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::issues::Issues;
use crate::next::Next;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::{Visit, Visitor};
use crate::{browser, meters, security};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page {
    frame: Frame,
    issues: Issues,
    next: Next,
    email: String,
}

/// GET: who is signed in goes on at once.
pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, Refusal> {
    let (visit, next) = (&visitor.visit, Next::of(&visitor.visit.query));
    let signed_in = visit.panel.panel.signed_in(visitor.browser.hash()).await?;
    if signed_in.is_some() {
        return see_other(&next.path());
    }
    shown(&visitor, next, String::new(), Issues::none(), StatusCode::OK)
}

/// POST
pub(crate) async fn sent(visitor: Visitor, fields: Fields) -> Result<HttpResponse, Refusal> {
    let visit = &visitor.visit;
    let next = Next::of(fields.form());
    let email = fields.get("email").trim().to_owned();
    keep_pace(visit, &email).await?;
    let ports = &visit.panel;
    let password = fields.get("password");
    match check(ports.panel.as_ref(), ports.passwords.as_ref(), &email, password).await? {
        Checked::Right(seller, hash) => match enter(&visitor, &seller, &hash).await? {
            Some(secret) => into_panel(visit, &secret, &next),
            None => refused(&visitor, next, email),
        },
        Checked::Wrong(known) => {
            note(visit, known);
            refused(&visitor, next, email)
        }
    }
}

/// Counts an attempt and waits where it has to.
pub(super) async fn keep_pace(visit: &Visit, email: &str) -> Result<(), Refusal> {
    let limits = visit.panel.settings.attempts;
    let pace = pace(visit.panel.rates.as_ref(), (visit.client, email), limits).await?;
    meters::paced(&pace);
    match pace {
        Pace::Refused(quota) => Err(Refusal::TooMany(quota)),
        Pace::After(Duration::ZERO) => Ok(()),
        Pace::After(wait) => {
            tokio::time::sleep(wait).await;
            Ok(())
        }
    }
}

/// Opens a session under a new secret. Nothing when the account was closed or its password changed meanwhile.
async fn enter(
    visitor: &Visitor,
    seller: &Seller,
    compared: &PasswordHash,
) -> Result<Option<BrowserSecret>, Refusal> {
    let visit = &visitor.visit;
    let by = ActingSeller {
        seller: seller.id,
        address: visit.client,
    };
    let secret = BrowserSecret::from_random(&visit.panel.randomness.secret());
    let opening = Opening {
        by,
        session: secret.hash(),
        earlier: Some(visitor.browser.hash()),
    };
    let opened = change(&visit.panel, opening, |transaction, _, opening| {
        let now = transaction.now();
        Box::pin(open_session(transaction, *opening, now))
    });
    if opened.await?.is_err() {
        return Ok(None);
    }
    if is_still_right(visit.panel.panel.as_ref(), seller.id, compared).await? {
        return Ok(Some(secret));
    }
    end(visit, secret.hash()).await?;
    Ok(None)
}

async fn end(visit: &Visit, session: SecretHash) -> Result<(), Refusal> {
    let ended = change(&visit.panel, session, |transaction, _, session| {
        Box::pin(async move {
            transaction.end_session(*session).await?;
            Ok::<_, usecases::Failure<std::convert::Infallible>>(())
        })
    });
    ended.await.map(drop)
}

/// Gives the browser its new secret and leads on.
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

/// Notes a wrong password of an account that exists, and does not wait for it: the answer takes as long as without one.
fn note(visit: &Visit, known: Option<SellerId>) {
    let Some(seller) = known else { return };
    let by = ActingSeller {
        seller,
        address: visit.client,
    };
    let trace_id = visit.trace_id;
    let noted = change(&visit.panel, by, |transaction, _, by| {
        Box::pin(async move {
            note_failure(transaction, *by).await?;
            Ok::<_, usecases::Failure<std::convert::Infallible>>(())
        })
    });
    let tasks = visit.panel.tasks.clone();
    drop(tasks.run(async move {
        if let Err(refusal) = noted.await {
            let cause = refusal.cause().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(
                trace_id = trace_id.as_str(),
                cause,
                "a wrong password was not noted"
            );
        }
    }));
}

fn refused(visitor: &Visitor, next: Next, email: String) -> Result<HttpResponse, Refusal> {
    let wrong = visitor.visit.language.texts().sign_in.wrong;
    let issues = Issues::one("password", wrong);
    shown(visitor, next, email, issues, StatusCode::UNPROCESSABLE_ENTITY)
}

fn shown(
    visitor: &Visitor,
    next: Next,
    email: String,
    issues: Issues,
    status: StatusCode,
) -> Result<HttpResponse, Refusal> {
    let visit = &visitor.visit;
    let target = next.request.as_deref().and_then(|handle| target(visit, handle));
    let frame = Frame::of_visitor(visitor, visit.language.texts().sign_in.title).noting(visit);
    let template = Page {
        frame,
        issues,
        next,
        email,
    };
    let mut response = crate::reply::page(status, &template)?;
    if let Some(address) = target {
        security::let_forms_lead_to(&mut response, &address);
    }
    Ok(response)
}

/// Where a request for consent is answered to. An application that may not ask the account that signs in is answered at once,
/// as a redirect of this page's form.
fn target(visit: &Visit, handle: &str) -> Option<String> {
    let sealer = Arc::clone(&visit.panel.sealer);
    let ticket = consent_ticket::open(sealer.as_ref(), handle).ok()?;
    Some(ticket.request.redirect_uri)
}
