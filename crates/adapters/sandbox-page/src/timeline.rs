//! What has happened in the sandbox, kept in memory: requests, events, delivery attempts, mails, changes.

#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use kernel::SellerId;
use parking_lot::Mutex;
use regex_lite::Regex;
use tokio::sync::watch;
use web::form::Form;

use crate::pages::{PageRefusal, Shown};

const MOST_ROWS: usize = 2_000;
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most that is kept of a body, in bytes.
const MOST_BODY: usize = 4 * 1024;

/// A secret: the value of a field in JSON, or in a form or query, after its name; or a token, wherever it stands.
/// Bodies are cut before they are searched, so a value may have no end. In JSON, `code` is that of an error.
#[expect(clippy::expect_used, reason = "the same at every start")]
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"((?:password|verifier|secret|token)"\s*:\s*")(?:[^"\\]|\\.)*"#,
        r#"|((?:password|verifier|secret|token|code)=)[^&"]*"#,
        r"|(?:ps_[a-z]{2}_|pss_|whsec_)[\w+/=%-]*",
    ))
    .expect("a regular expression")
});

kernel::words! {
    /// What happened.
    #[derive(Default)]
    pub enum Kind {
        #[default]
        Request = "request",
        Event = "event",
        Attempt = "attempt",
        Mail = "mail",
        Change = "change",
    }
}

/// Something that happened. Secrets are hidden when it is recorded.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Rises in the order of the recording, which sets it.
    pub number: u64,
    /// When it began.
    pub at: DateTime<Utc>,
    /// When its cause was: for an attempt, when its event occurred.
    pub caused_at: DateTime<Utc>,
    pub kind: Kind,
    pub seller: Option<SellerId>,
    /// Other sellers with a part in it.
    pub sellers: Vec<SellerId>,
    /// The application's `client_id`.
    pub application: Option<String>,
    /// The orders, offers and applications that it is about.
    pub ids: Vec<String>,
    /// Of attempts alone: the delivery, which is among the ids.
    pub delivery: Option<String>,
    /// Of requests alone.
    pub trace_id: Option<String>,
    /// Whether it is a request that changed something.
    pub is_write: bool,
    pub title: String,
    pub outcome: String,
    pub failed: bool,
    /// The body of the request or event.
    pub body: String,
    /// The body of the response.
    pub answer: String,
    /// The page of the mail.
    pub link: Option<String>,
    /// What it takes in memory, roughly; set when it is recorded.
    pub bytes: usize,
}

impl Row {
    /// A row with a title and nothing else.
    pub fn new(kind: Kind, at: DateTime<Utc>, title: impl Into<String>) -> Self {
        Self {
            at,
            caused_at: at,
            kind,
            title: title.into(),
            ..Self::default()
        }
    }

    /// The beginning of a body.
    pub fn text(body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let end = text.floor_char_boundary(MOST_BODY);
        let kept = text.get(..end).unwrap_or_default();
        let mark = if kept.len() < text.len() { "…" } else { "" };
        [kept, mark].concat()
    }

    fn names(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known.eq_ignore_ascii_case(id))
    }

    fn shares(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| self.names(id))
    }

    fn is_of(&self, seller: SellerId) -> bool {
        self.seller == Some(seller) || self.sellers.contains(&seller)
    }
}

/// The last 2 000 rows within 16 MB. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    kept: Arc<Mutex<Kept>>,
    /// The number of the last row.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    rows: VecDeque<Arc<Row>>,
    bytes: usize,
}

impl Timeline {
    pub fn record(&self, mut row: Row) {
        let mut bytes = size_of::<Row>() + row.sellers.len() * size_of::<SellerId>();
        let texts = [&mut row.title, &mut row.outcome, &mut row.body, &mut row.answer];
        for text in texts.into_iter().chain(&mut row.ids) {
            *text = SECRET.replace_all(text, "${1}${2}•••").into_owned();
            bytes += size_of::<String>() + text.capacity();
        }
        let mut kept = self.kept.lock();
        let number = *self.last.borrow() + 1;
        kept.bytes += bytes;
        kept.rows.push_back(Arc::new(Row { number, bytes, ..row }));
        while kept.rows.len() > MOST_ROWS || kept.bytes > MOST_BYTES {
            kept.bytes -= kept.rows.pop_front().map_or(kept.bytes, |oldest| oldest.bytes);
        }
        self.last.send_replace(number);
    }

    /// The number of the last row, as it rises; 0 before the first.
    pub(crate) fn last(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The rows that the query asks for, newest first.
    pub(crate) fn rows(&self, query: &Form) -> Shown<Vec<Arc<Row>>> {
        let all: Vec<_> = self.kept.lock().rows.iter().cloned().collect();
        let is_meant = filter(query, &all)?;
        Ok(all.iter().rev().filter(|row| is_meant(row)).cloned().collect())
    }
}

/// Whether a row is one that the query asks for, with what all rows tell about it.
fn filter<'a>(query: &'a Form, all: &'a [Arc<Row>]) -> Shown<impl Fn(&Row) -> bool + 'a> {
    let kind = wanted(query, "kind").map(|kind| {
        let kinds = Kind::ALL.map(Kind::as_str).join(", ");
        Kind::parse(kind).ok_or_else(|| PageRefusal::bad(format!("`kind` is one of {kinds}.")))
    });
    let seller = wanted(query, "seller").map(|id| {
        let sentence = "`seller` is a seller's id, as /sandbox/api/offers has it.";
        id.parse::<SellerId>().map_err(|_| PageRefusal::bad(sentence))
    });
    let (kind, seller, before) = (kind.transpose()?, seller.transpose()?, number(query, "before")?);
    let [about, application, trace] = ["about", "application", "trace"].map(|name| wanted(query, name));
    let gather = |is_meant: &dyn Fn(&Row) -> bool| -> HashSet<&'a str> {
        let meant = all.iter().filter(|row| is_meant(row));
        meant.flat_map(|row| &row.ids).map(String::as_str).collect()
    };
    // The ids and numbers of the seller's orders: mails to buyers have no seller.
    let of_seller = gather(&|row| {
        let is_known = row.kind == Kind::Event || row.is_write;
        is_known && seller.is_some_and(|seller| row.is_of(seller))
    });
    // The ids and numbers of the order or offer that is meant, of which some rows have only one.
    let mut of_about = gather(&|row| row.kind == Kind::Event && about.is_some_and(|about| row.names(about)));
    of_about.extend(about);
    let came_of_trace = came_of(all, trace);
    Ok(move |row: &Row| {
        let is_one_of = |ids: &HashSet<&str>| row.ids.iter().any(|id| ids.contains(id.as_str()));
        let is_of = |seller| row.is_of(seller) || row.kind == Kind::Mail && is_one_of(&of_seller);
        let is_by = |id: &str| row.application.as_deref() == Some(id) || row.names(id);
        let is_traced = |trace| row.trace_id.as_deref() == Some(trace) || came_of_trace(row);
        before.is_none_or(|before| row.number < before)
            && kind.is_none_or(|kind| row.kind == kind)
            && seller.is_none_or(is_of)
            && (about.is_none() || is_one_of(&of_about))
            && application.is_none_or(is_by)
            && trace.is_none_or(is_traced)
    })
}

/// Whether a row came of a request with this trace id: from a request that changed something to the next one about
/// the same, what happens to it came of the first.
fn came_of<'a>(all: &'a [Arc<Row>], trace: Option<&'a str>) -> impl Fn(&Row) -> bool + 'a {
    let writes = || all.iter().filter(|row| row.is_write);
    let traced = writes().filter(|row| trace.is_some() && row.trace_id.as_deref() == trace);
    let with_end = |write: &'a Arc<Row>| {
        let is_next = |row: &&Arc<Row>| row.caused_at > write.caused_at && row.shares(&write.ids);
        (write, writes().filter(is_next).map(|row| row.caused_at).min())
    };
    let traced: Vec<_> = traced.map(with_end).collect();
    move |row| {
        let came_of = |(write, end): &(&Arc<Row>, Option<DateTime<Utc>>)| {
            // Of a redelivery comes an attempt, of an event that occurred before.
            let is_redelivered = row.delivery.as_ref().is_some_and(|id| write.ids.contains(id));
            let caused_at = if is_redelivered { row.at } else { row.caused_at };
            let is_before_end = end.is_none_or(|end| caused_at < end);
            caused_at >= write.caused_at && is_before_end && row.shares(&write.ids)
        };
        row.kind != Kind::Request && traced.iter().any(came_of)
    }
}

/// What a query asks for by this name; None for anything. The names: `seller`; `about`, an order or offer, by
/// id or number; `application`; `trace`, requests with a trace id, and all that came of them; `kind`; `before`, a
/// row's number; `limit`.
fn wanted<'a>(query: &'a Form, name: &str) -> Option<&'a str> {
    query.get(name).map(str::trim).filter(|sent| !sent.is_empty())
}

pub(crate) fn number<T: FromStr>(query: &Form, name: &str) -> Shown<Option<T>> {
    let invalid = |_| PageRefusal::bad("`limit` and `before` are whole numbers.");
    wanted(query, name).map(str::parse).transpose().map_err(invalid)
}
