//! `/panel/forgotten-password`: sends a link for a new password. Its answer is the same whether or not there is such an account.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use usecases::ActingSeller;
use usecases::account_links::send_reset;

use super::sign_in::keep_pace;
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::refusal::Refusal;
use crate::visit::{Visit, Visitor};

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

/// GET
pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, Refusal> {
    let title = visitor.visit.language.texts().passwords.forgotten_title;
    let frame = Frame::of_visitor(&visitor, title);
    crate::reply::page(StatusCode::OK, &Page { frame })
}

/// POST
pub(crate) async fn sent(visitor: Visitor, fields: Fields) -> Result<HttpResponse, Refusal> {
    let email = fields.get("email").trim().to_owned();
    keep_pace(&visitor.visit, &email).await?;
    send(&visitor.visit, email);
    let t = &visitor.visit.language.texts().passwords;
    let template = SentPage {
        frame: Frame::of_visitor(&visitor, t.sent_title),
        text: t.sent_text,
        link: "/panel/sign-in",
        label: t.back_to_sign_in,
    };
    crate::reply::page(StatusCode::OK, &template)
}

/// Looks the account up and queues the mail behind the answer's back, which takes as long for an account that there is not.
fn send(visit: &Visit, email: String) {
    let (panel, address, trace_id) = (visit.panel.clone(), visit.client, visit.trace_id);
    let sending = async move {
        let account = panel.panel.account(&email).await?;
        let open = account.filter(|account| account.seller.closed_at.is_none());
        let Some(account) = open else { return Ok(()) };
        let by = ActingSeller {
            seller: account.seller.id,
            address,
        };
        let queued = change(&panel, by, |transaction, panel, by| {
            let (randomness, now) = (panel.randomness.as_ref(), transaction.now());
            Box::pin(send_reset(
                transaction,
                randomness,
                *by,
                &panel.settings.public_url,
                now,
            ))
        });
        queued.await.map(drop)
    };
    drop(visit.panel.tasks.run(async move {
        let outcome: Result<(), Refusal> = sending.await;
        if let Err(refusal) = outcome {
            let cause = refusal.cause().map(ToString::to_string).unwrap_or_default();
            tracing::error!(
                trace_id = trace_id.as_str(),
                cause,
                "a link for a new password was not queued"
            );
        }
    }));
}
