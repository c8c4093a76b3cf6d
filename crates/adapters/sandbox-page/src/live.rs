//! The timeline in a browser: as a page, as JSON, and the signal to load lists anew; and mails as their readers
//! see them.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use askama::Template;
use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _, unfold};
use mail_parser::{Addr, Address, Message, MessageParser};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;
use web::Tasks;
use web::form::Form;

use crate::SandboxPage;
use crate::pages::{Frame, PageRefusal, Shown, html, rendered};
use crate::timeline::{Kind, Row, number};

/// The most rows on a page.
const ON_PAGE: usize = 100;
/// Open pages load their lists anew at each tick.
const TICK: &str = "event: tick\ndata:\n\n";
/// The shortest time between two ticks.
const GATHER: Duration = Duration::from_millis(250);
/// After this long without a tick, a comment shows to both sides that the connection lives: a closed one is noticed
/// at the second.
const HEARTBEAT: Duration = Duration::from_secs(5);
const COMMENT: &str = ":\n\n";

/// The newest rows, newest first, which an open page keeps up to date.
#[derive(Template)]
#[template(path = "timeline_list.html")]
struct List<'a> {
    page: &'a SandboxPage,
    /// The query as it was sent.
    sent: &'a str,
    rows: Vec<Arc<Row>>,
    /// The `before` of the rows that follow, if there are any, and the rest of their query.
    earlier: Option<u64>,
    filters: String,
}

impl List<'_> {
    /// A seller as people know it.
    fn seller(&self, row: &Row) -> Option<String> {
        let id = row.seller?;
        let seller = self.page.sellers.iter().find(|seller| seller.id == id.uuid());
        Some(seller.map_or_else(|| id.to_string(), |seller| format!("seller {}", seller.seller_no)))
    }
}

/// The list as HTML. `sent` is the query as it was sent.
pub(crate) fn list(page: &SandboxPage, query: &Form, sent: &str) -> Shown<String> {
    let mut rows = page.settings.timeline.rows(query)?;
    let earlier = rows.get(ON_PAGE).map(|row| row.number + 1);
    rows.truncate(ON_PAGE);
    // Events are recorded a moment after they occurred.
    rows.sort_by_key(|row| Reverse(row.at));
    let filters = sent.split('&').filter(|pair| !pair.starts_with("before="));
    let filters = filters.collect::<Vec<_>>().join("&");
    Ok(rendered(&List {
        page,
        sent,
        rows,
        earlier,
        filters,
    }))
}

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage<'a> {
    frame: Frame<'a>,
    query: &'a Form,
    list: String,
}

/// `GET /sandbox/timeline`: the list with its filter.
pub(crate) fn timeline(page: &SandboxPage, query: &Form, sent: &str) -> Shown {
    let (frame, list) = (page.frame("Timeline"), list(page, query, sent)?);
    Ok(html(&TimelinePage { frame, query, list }))
}

/// `GET /sandbox/api/timeline`: the same for programs, newest first. `before` and `limit` page through it.
pub(crate) fn json(page: &SandboxPage, query: &Form) -> Shown {
    let known = "about, application, before, kind, limit, seller, trace";
    let is_known = |(name, _): (&str, &str)| known.split(", ").any(|one| one == name);
    if !query.pairs().all(is_known) {
        return Err(PageRefusal::bad(format!("The parameters are {known}.")));
    }
    let (limit, rows) = (number(query, "limit")?, page.settings.timeline.rows(query)?);
    let item = |row: &Arc<Row>| {
        json!({
            "number": row.number, "at": row.at, "kind": row.kind.as_str(), "title": row.title, "outcome": row.outcome,
            "failed": row.failed, "seller_id": row.seller.map(|seller| seller.to_string()),
            "client_id": row.application, "ids": row.ids, "trace_id": row.trace_id, "body": row.body,
            "answer": row.answer, "link": row.link,
        })
    };
    let items: Vec<_> = rows.iter().take(limit.unwrap_or(ON_PAGE)).map(item).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

/// `GET /sandbox/live`: a first tick, since rows may have come before the connection, and one after each
/// change. It has nothing of the rows.
pub(crate) fn live(page: &SandboxPage) -> HttpResponse {
    let mut last = page.settings.timeline.last();
    last.mark_changed();
    let messages = messages(last, page.settings.tasks.clone());
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .streaming(messages.map(|message| Ok::<_, Infallible>(Bytes::from_static(message.as_bytes()))))
}

/// Ticks, each for all rows that come within [`GATHER`], and comments, until the process stops.
fn messages(last: watch::Receiver<u64>, tasks: Tasks) -> impl Stream<Item = &'static str> {
    let messages = unfold(last, |mut last| async move {
        if timeout(HEARTBEAT, last.changed()).await.is_err() {
            return Some((COMMENT, last));
        }
        sleep(GATHER).await;
        last.mark_unchanged();
        Some((TICK, last))
    });
    messages.take_until(async move { tasks.stopping().await })
}

#[derive(Template)]
#[template(path = "mail.html")]
struct Mail<'a> {
    mail: Message<'a>,
}

/// `GET /sandbox/mail/{id}`: a mail as its reader sees it.
pub(crate) async fn mail(page: &SandboxPage, id: &str) -> Shown {
    let gone = || {
        PageRefusal::missing(
            "There is no such mail any more: the timeline has links to those of this sandbox.",
        )
    };
    let id: Uuid = id.parse().map_err(|_| gone())?;
    let file = page.settings.mails.join(format!("{id}.eml"));
    let mail = tokio::fs::read(file).await.map_err(|_| gone())?;
    let mail = MessageParser::default().parse(&mail).ok_or_else(gone)?;
    let mut shown = html(&Mail { mail });
    let policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let policy = HeaderValue::from_static(policy);
    shown.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use chrono::DateTime;
    use tokio::runtime::Handle;
    use tokio::time::Instant;

    use super::*;
    use crate::Timeline;

    #[tokio::test(start_paused = true)]
    async fn many_rows_make_one_tick_and_a_stop_ends_the_stream() {
        let (timeline, tasks) = (Timeline::default(), Tasks::new(Handle::current()));
        let mut messages = pin!(messages(timeline.last(), tasks.clone()));
        for n in 1..=60 {
            timeline.record(Row::new(Kind::Event, DateTime::UNIX_EPOCH, n.to_string()));
        }
        for (waits, expected) in [(GATHER, TICK), (HEARTBEAT, COMMENT)] {
            let began = Instant::now();
            assert_eq!(messages.next().await, Some(expected));
            assert!(began.elapsed() >= waits);
        }
        tasks.stop();
        assert_eq!(messages.next().await, None);
    }
}
