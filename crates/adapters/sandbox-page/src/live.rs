//! The timeline in a browser: as a page, live (Server-Sent Events) and as JSON; and mails as their readers see
//! them.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName};
use askama::Template;
use bytes::Bytes;
use futures_util::stream::{StreamExt as _, once, unfold};
use mail_parser::{Address, MessageParser};
use serde_json::json;
use tokio::select;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;
use web::Tasks;
use web::form::Form;

use crate::pages::{Frame, html, rendered};
use crate::timeline::{Kind, Row, Timeline, wanted};
use crate::{SandboxPage, SandboxSeller};

/// The most rows on a page, and in one message to an open page.
const ON_PAGE: usize = 100;
const AT_ONCE: usize = 50;
/// How long rows are gathered before they are sent together.
const GATHER: Duration = Duration::from_millis(250);
/// After this long without rows, a comment shows to both sides that the connection lives: a closed one is noticed
/// at the second.
const HEARTBEAT: Duration = Duration::from_secs(5);
const COMMENT: &str = ":\n\n";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Rows as HTML, newest first.
#[derive(Template)]
#[template(path = "timeline_rows.html")]
struct Rows<'a> {
    sellers: &'a [SandboxSeller],
    rows: Vec<Arc<Row>>,
    /// How many older ones are left out.
    passed_over: usize,
}

impl<'a> Rows<'a> {
    fn new(sellers: &'a [SandboxSeller], mut rows: Vec<Arc<Row>>, most: usize) -> Self {
        let passed_over = rows.len().saturating_sub(most);
        rows.truncate(most);
        // Events are recorded a moment after they occurred.
        rows.sort_by_key(|row| Reverse(row.at));
        Self {
            sellers,
            rows,
            passed_over,
        }
    }

    fn bodies(row: &Row) -> impl Iterator<Item = (&'static str, &str)> {
        let bodies = [("Body", row.body.as_str()), ("Answer", row.answer.as_str())];
        bodies.into_iter().filter(|(_, body)| !body.is_empty())
    }

    /// Where everything about an order, offer or application is.
    fn about(id: &str) -> String {
        let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        format!("/sandbox/timeline?about={id}")
    }

    /// A seller as people know it.
    fn seller(&self, row: &Row) -> Option<String> {
        let id = row.seller?;
        let seller = self.sellers.iter().find(|seller| seller.id == id);
        Some(seller.map_or_else(|| id.to_string(), |seller| format!("seller {}", seller.seller_no)))
    }
}

/// A list that grows by itself.
#[derive(Template)]
#[template(path = "timeline_list.html")]
struct List<'a> {
    address: String,
    rows: Rows<'a>,
}

/// The list as HTML. `sent` is the query as it was sent.
pub(crate) fn list(page: &SandboxPage, query: &Form, sent: &str) -> String {
    let settings = &page.settings;
    let newest = *settings.timeline.last().borrow();
    let mut rows = settings.timeline.rows(query, 0..newest + 1);
    rows.truncate(ON_PAGE);
    rendered(&List {
        address: format!("/sandbox/live?after={newest}&{sent}"),
        rows: Rows::new(&settings.sellers, rows, ON_PAGE),
    })
}

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage<'a> {
    frame: Frame,
    sellers: &'a [SandboxSeller],
    query: &'a Form,
    list: String,
}

impl TimelinePage<'_> {
    fn wanted(&self, name: &str) -> &str {
        wanted(self.query, name)
    }
}

/// `GET /sandbox/timeline`: the list with its filter.
pub(crate) fn timeline(page: &SandboxPage, query: &Form, sent: &str) -> HttpResponse {
    let shown = TimelinePage {
        frame: page.bare_frame("Timeline"),
        sellers: &page.settings.sellers,
        query,
        list: list(page, query, sent),
    };
    html(&shown)
}

/// `GET /sandbox/api/timeline`: the same for programs, newest first. `before` and `limit` page through it.
pub(crate) fn json(page: &SandboxPage, query: &Form) -> HttpResponse {
    let number = |name| query.get(name).and_then(|number| number.parse().ok());
    let limit = number("limit").and_then(|limit| usize::try_from(limit).ok());
    let timeline = &page.settings.timeline;
    let rows = timeline.rows(query, 0..number("before").unwrap_or(u64::MAX));
    let item = |row: &Arc<Row>| {
        json!({
            "number": row.number, "at": row.at, "kind": row.kind.as_str(), "title": row.title, "outcome": row.outcome,
            "failed": row.failed, "seller_id": row.seller.map(|seller| seller.to_string()),
            "client_id": row.application, "ids": row.ids, "trace_id": row.trace_id, "body": row.body,
            "answer": row.answer, "link": row.link,
        })
    };
    let items: Vec<_> = rows.iter().take(limit.unwrap_or(ON_PAGE)).map(item).collect();
    HttpResponse::Ok().json(json!({ "items": items }))
}

/// The connection of an open page, which receives new rows.
struct Listener {
    timeline: Timeline,
    query: Form,
    tasks: Tasks,
    last: watch::Receiver<u64>,
    /// The number of the last row that was sent.
    seen: u64,
}

/// `GET /sandbox/live`: the rows after the one numbered `after`, as they come.
pub(crate) fn live(page: &Arc<SandboxPage>, query: &Form, headers: &HeaderMap) -> HttpResponse {
    let Ok(place) = Arc::clone(&page.streams).try_acquire_owned() else {
        return HttpResponse::ServiceUnavailable().body("Too many pages are open: close some.\n");
    };
    let (timeline, tasks) = (page.settings.timeline.clone(), page.settings.tasks.clone());
    let last = timeline.last();
    let newest = *last.borrow();
    // A browser that reconnects says where it was.
    let seen = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let seen = seen.or(query.get("after")).and_then(|number| number.parse().ok());
    let listener = Listener {
        timeline,
        query: query.clone(),
        tasks,
        last,
        // A higher number is of an earlier run of the sandbox.
        seen: seen.map_or(newest, |seen| if seen > newest { 0 } else { seen }),
    };
    let state = (listener, Arc::clone(page), place);
    let told = unfold(state, |(mut listener, page, place)| async move {
        let rows = listener.next().await?;
        let message = message(listener.seen, &page.settings.sellers, rows);
        Some((message, (listener, page, place)))
    });
    let told = once(ready(COMMENT.to_owned())).chain(told);
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .streaming(told.map(|message| Ok::<_, Infallible>(Bytes::from(message))))
}

impl Listener {
    /// The rows that came, once they are gathered; maybe none. Ends once the process stops.
    async fn next(&mut self) -> Option<Vec<Arc<Row>>> {
        let seen = self.seen;
        let news = timeout(HEARTBEAT, self.last.wait_for(|last| *last > seen));
        let gathered = async {
            if news.await.is_ok() {
                sleep(GATHER).await;
            }
        };
        select! {
            () = self.tasks.stopping() => return None,
            () = gathered => {}
        }
        self.seen = *self.last.borrow();
        Some(self.timeline.rows(&self.query, seen + 1..self.seen + 1))
    }
}

/// A message of the event stream.
fn message(number: u64, sellers: &[SandboxSeller], rows: Vec<Arc<Row>>) -> String {
    if rows.is_empty() {
        return COMMENT.to_owned();
    }
    data(number, &rendered(&Rows::new(sellers, rows, AT_ONCE)))
}

/// No line of a message may contain a carriage return.
fn data(number: u64, html: &str) -> String {
    let lines = html.split(['\n', '\r']).map(|line| format!("data: {line}\n"));
    format!("id: {number}\nevent: rows\n{}\n", lines.collect::<String>())
}

/// `GET /sandbox/mail/{id}`: a mail as its reader sees it.
pub(crate) async fn mail(page: &SandboxPage, id: &str) -> HttpResponse {
    let Some(text) = mail_text(page, id).await else {
        let sentence = "There is no such mail any more: the timeline has links to those of this sandbox.\n";
        return HttpResponse::NotFound().body(sentence);
    };
    let policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, policy))
        .body(text)
}

async fn mail_text(page: &SandboxPage, id: &str) -> Option<String> {
    let id: Uuid = id.parse().ok()?;
    let file = page.settings.mails.join(format!("{id}.eml"));
    let mail = tokio::fs::read(file).await.ok()?;
    let mail = MessageParser::default().parse(&mail)?;
    let first = |addresses: Option<&Address<'_>>| {
        let address = addresses.and_then(|addresses| addresses.first()?.address());
        address.unwrap_or_default().to_owned()
    };
    Some(rendered(&Mail {
        subject: mail.subject().unwrap_or_default(),
        from: first(mail.from()),
        to: first(mail.to()),
        html: &mail.body_html(0)?,
    }))
}

#[derive(Template)]
#[template(
    source = "<p><strong>{{ subject }}</strong><br>from {{ from }} to {{ to }}</p><hr>{{ html|safe }}",
    ext = "html"
)]
struct Mail<'a> {
    subject: &'a str,
    from: String,
    to: String,
    html: &'a str,
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use tokio::runtime::Handle;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_open_page_is_told_in_batches_until_the_process_stops() {
        let (timeline, tasks) = (Timeline::default(), Tasks::new(Handle::current()));
        let mut listener = Listener {
            timeline: timeline.clone(),
            query: Form::parse(b"kind=event").unwrap(),
            tasks: tasks.clone(),
            last: timeline.last(),
            seen: 0,
        };
        let record = |kind, n| timeline.record(Row::new(kind, DateTime::UNIX_EPOCH, format!("<{n}>")));
        (1..=60).for_each(|n| record(Kind::Event, n));
        let rows = message(60, &[], listener.next().await.unwrap());
        assert!(rows.starts_with("id: 60\nevent: rows\ndata: "), "{rows}");
        assert_eq!(rows.matches("<li id=").count(), AT_ONCE, "{rows}");
        assert!(rows.contains("<code>&#60;60&#62;</code>"), "{rows}");
        assert!(rows.contains("10 more rows"), "{rows}");
        // Nothing for this page, then nothing at all.
        record(Kind::Mail, 61);
        for waits in [GATHER, HEARTBEAT] {
            let asked_at = Instant::now();
            assert_eq!(message(61, &[], listener.next().await.unwrap()), COMMENT);
            assert!(asked_at.elapsed() >= waits);
        }
        assert_eq!(listener.seen, 61);
        tasks.stop();
        assert!(listener.next().await.is_none());
    }

    #[test]
    fn every_line_of_a_message_is_data() {
        let expected = "id: 7\nevent: rows\ndata: <li>a\ndata: b\ndata: event: x</li>\n\n";
        assert_eq!(data(7, "<li>a\rb\nevent: x</li>"), expected);
    }
}
