//! `/panel/forgotten-password`: sends a link for a new password. The response does not reveal whether the account exists.

use actix_web::HttpResponse;
use askama::Template;
use usecases::account_links::send_reset;

use super::ok;
use super::sign_in::keep_pace;
use crate::frame::Frame;
use crate::refusal::Refusal;
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "forgotten.html")]
struct Page {
    frame: Frame,
}

#[derive(Template)]
#[template(path = "message.html")]
struct SentPage {
    frame: Frame,
    text: &'static str,
    link: &'static str,
    label: &'static str,
}

pub(crate) async fn page(visit: Visit) -> Result<HttpResponse, Refusal> {
    let frame = visit.frame(visit.texts().passwords.forgotten_title);
    ok(&Page { frame })
}

/// POST: looks up the account and queues the mail in the background, so that the response takes the same time for an unknown account.
pub(crate) async fn sent(visit: Visit) -> Result<HttpResponse, Refusal> {
    let email = visit.fields.get("email").trim().to_owned();
    keep_pace(&visit, &email).await?;
    let t = &visit.texts().passwords;
    let answer = ok(&SentPage {
        frame: visit.frame(t.sent_title),
        text: t.sent_text,
        link: "/panel/sign-in",
        label: t.back_to_sign_in,
    });
    let tasks = visit.panel.tasks.clone();
    drop(tasks.run(async move {
        if let Err(refusal) = send(&visit, &email).await {
            refusal.log(&visit.trace_id, "a link for a new password was not queued");
        }
    }));
    answer
}

async fn send(visit: &Visit, email: &str) -> Result<(), Refusal> {
    let account = visit.panel.panel.account(email).await?;
    let open = account.filter(|account| account.seller.closed_at.is_none());
    let Some(account) = open else { return Ok(()) };
    let by = visit.acting_for(account.seller.id);
    let queued = visit.change(by, |tx, panel, by| {
        let (randomness, public_url) = (panel.randomness.as_ref(), &panel.settings.public_url);
        Box::pin(send_reset(tx, randomness, *by, public_url, tx.now()))
    });
    queued.await.map(drop)
}
