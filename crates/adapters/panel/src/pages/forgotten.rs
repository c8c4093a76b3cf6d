//! `/panel/forgotten-password`: sends a link for a new password. The response does not reveal whether the
//! account exists.

use askama::Template;
use usecases::account_links::send_reset;

use super::sign_in::limit_attempts;
use super::{MessagePage, ok};
use crate::frame::Frame;
use crate::page_error::PageResult;
use crate::page_request::PageRequest;
use crate::places::Place;

#[derive(Template)]
#[template(path = "forgotten.html")]
struct ForgottenPage {
    frame: Frame,
}

pub(crate) async fn page(request: PageRequest) -> PageResult {
    let frame = request.frame(request.texts().passwords.forgotten_title);
    ok(&ForgottenPage { frame })
}

/// POST: looks up the account and queues the mail in the background, so that the response takes the same time
/// for an unknown account.
pub(crate) async fn submit(mut request: PageRequest) -> PageResult {
    let email = request.fields.get("email").trim().to_owned();
    limit_attempts(&request, &email).await?;
    let lookup = request.panel.places.link_lookup(request.client)?;
    let t = &request.texts().passwords;
    let answer = ok(&MessagePage {
        frame: request.frame(t.sent_title),
        text: t.sent_text,
        link: "/panel/sign-in",
        label: t.back_to_sign_in,
        trace_id: None,
    });
    // A second one now would find the first's link, and send nothing.
    let Some(place) = request.panel.places.link(&email) else {
        return answer;
    };
    let tasks = request.panel.ports.tasks.clone();
    drop(tasks.run(async move {
        let sent = send(&mut request, &email, lookup).await;
        drop(place);
        if let Err(error) = sent {
            error.log(&request.trace_id, "a link for a new password was not queued");
        }
    }));
    answer
}

async fn send(request: &mut PageRequest, email: &str, lookup: Place) -> PageResult<()> {
    let account = request.panel.accounts.account(email).await?;
    drop(lookup);
    let open = account.filter(|account| account.seller.closed_at.is_none());
    let Some(account) = open else { return Ok(()) };
    request.seller = Some(account.seller.id);
    let by = request.acting_for(account.seller.id);
    let queued = request.change(by, |tx, panel, by| {
        let (randomness, public_url) = (panel.ports.randomness.as_ref(), &panel.ports.service.public_url);
        let interval = panel.settings.link_interval;
        Box::pin(send_reset(tx, randomness, *by, public_url, interval, tx.now()))
    });
    queued.await.map(drop)
}
