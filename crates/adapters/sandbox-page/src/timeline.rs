//! What has happened in the sandbox, kept in memory: requests, events, delivery attempts, mails, changes.

#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use kernel::SellerId;
use parking_lot::Mutex;
use tokio::sync::watch;
use web::access_log::start_of_secret;
use web::form::Form;

const MOST_ROWS: usize = 2_000;
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most that is kept of a body, in bytes.
const MOST_BODY: usize = 4 * 1024;
/// In place of a secret.
const HIDDEN: &str = "•••";
/// Ends of the names of fields whose values may lack the prefix of a secret. In JSON, `code` is that of an error.
const SECRETS: [&str; 5] = ["password", "code_verifier", "secret", "token", "code="];

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

/// Something that happened. Secrets are hidden, and bodies cut, when it is recorded.
#[derive(Debug, Clone, Default)]
pub struct Row {
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

    /// As much of a body as a row keeps, and a little more: [`Timeline::record`] sees that it is cut.
    pub fn text(body: &[u8]) -> String {
        let begin = body.get(..MOST_BODY + 4).unwrap_or(body);
        String::from_utf8_lossy(begin).into_owned()
    }

    fn names(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }

    fn without_secrets(self) -> Self {
        Self {
            title: hide_secrets(&self.title),
            outcome: hide_secrets(&self.outcome),
            ids: self.ids.iter().map(|id| hide_secrets(id)).collect(),
            body: hide_secrets(&cut(self.body)),
            answer: hide_secrets(&cut(self.answer)),
            ..self
        }
    }

    /// What it takes in memory, roughly.
    fn bytes(&self) -> usize {
        let texts = [&self.title, &self.outcome, &self.body, &self.answer].into_iter();
        let optional = [&self.application, &self.trace_id, &self.link, &self.delivery];
        let texts = texts.chain(optional.into_iter().flatten()).chain(&self.ids);
        texts.map(String::capacity).sum::<usize>()
            + self.ids.capacity() * size_of::<String>()
            + self.sellers.capacity() * size_of::<SellerId>()
            + size_of::<Numbered>()
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MOST_BODY {
        text.truncate(text.floor_char_boundary(MOST_BODY));
        text.push('…');
    }
    text
}

/// Hides the values of secret fields, and tokens wherever they stand.
fn hide_secrets(text: &str) -> String {
    let text = hide_values(&text.replace("%5F", "_").replace("%5f", "_"));
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some((before, secret)) = start_of_secret(rest).and_then(|at| rest.split_at_checked(at)) {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || "_-+/=%".contains(c);
        shown += before;
        shown += HIDDEN;
        rest = secret.trim_start_matches(is_inside);
    }
    shown + rest
}

/// Hides what follows the names of secret fields, in JSON, forms and queries, which may be cut anywhere.
fn hide_values(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    let end_of_name = |rest: &str| {
        let ends = SECRETS
            .iter()
            .filter_map(|name| Some(rest.find(name)? + name.len()));
        ends.min()
    };
    while let Some((name, after)) = end_of_name(rest).and_then(|end| rest.split_at_checked(end)) {
        let is_between = |c: char| c.is_whitespace() || "\":=[".contains(c);
        let value = after.trim_start_matches(is_between);
        let between = after.strip_suffix(value).unwrap_or_default();
        shown.extend([name, between]);
        rest = value;
        let has_value = name.ends_with('=') || between.contains([':', '=']);
        if has_value && !value.starts_with('{') {
            let mut is_escaped = false;
            let is_text = between.ends_with('"');
            // Of a form or a query, or else of JSON.
            let is_form = name.ends_with('=') || between.contains('=');
            let ends_of_value = if is_form { "&\"" } else { "&,]}" };
            let end = value.find(|c: char| {
                let ends = if is_text {
                    c == '"' && !is_escaped
                } else {
                    ends_of_value.contains(c) || c.is_whitespace()
                };
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            shown += HIDDEN;
            rest = end.and_then(|end| value.get(end..)).unwrap_or_default();
        }
    }
    shown + rest
}

/// A row and its number: they rise in the order of the recording.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) row: Row,
}

/// The last 2 000 rows within 16 MB. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Timeline(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<Kept>,
    /// The number of the last row.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    rows: VecDeque<Arc<Numbered>>,
    bytes: usize,
}

impl Timeline {
    pub fn record(&self, row: Row) {
        let row = row.without_secrets();
        let mut kept = self.0.kept.lock();
        let number = *self.0.last.borrow() + 1;
        kept.bytes += row.bytes();
        kept.rows.push_back(Arc::new(Numbered { number, row }));
        while kept.rows.len() > MOST_ROWS || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.rows.pop_front() else {
                break;
            };
            kept.bytes -= oldest.row.bytes();
        }
        self.0.last.send_replace(number);
    }

    /// The number of the last row, as it rises; 0 before the first.
    pub(crate) fn last(&self) -> watch::Receiver<u64> {
        self.0.last.subscribe()
    }

    /// The rows with these numbers that the filter admits, newest first.
    pub(crate) fn rows(&self, filter: &Filter, numbers: Range<u64>) -> Vec<Arc<Numbered>> {
        let all: Vec<_> = self.0.kept.lock().rows.iter().cloned().collect();
        let meant = Meant::new(filter, &all);
        let is_meant =
            |numbered: &&Arc<Numbered>| numbers.contains(&numbered.number) && meant.has(&numbered.row);
        all.iter().rev().filter(is_meant).cloned().collect()
    }
}

/// A filter, with what the kept rows tell about it.
struct Meant<'a> {
    filter: &'a Filter,
    seller: Option<SellerId>,
    /// The ids and numbers of the seller's orders: mails to buyers have no seller.
    of_seller: HashSet<&'a str>,
    /// The ids and numbers of the order that is meant: some rows have only one of them.
    about: HashSet<&'a str>,
    spans: Vec<Span<'a>>,
}

impl<'a> Meant<'a> {
    fn new(filter: &'a Filter, all: &'a [Arc<Numbered>]) -> Self {
        let rows = || all.iter().map(|numbered| &numbered.row);
        let events = || rows().filter(|row| row.kind == Kind::Event);
        let seller = filter.get("seller").parse().ok();
        let of_seller = rows().filter(|row| {
            let is_known = row.kind == Kind::Event || row.is_write;
            let is_of = |seller| row.seller == Some(seller) || row.sellers.contains(&seller);
            is_known && seller.is_some_and(is_of)
        });
        let about = events().filter(|event| event.names(filter.get("about")));
        let ids = |event: &'a Row| event.ids.iter().map(String::as_str);
        Self {
            filter,
            seller,
            of_seller: of_seller.flat_map(ids).collect(),
            about: about.flat_map(ids).chain([filter.get("about")]).collect(),
            spans: Span::of_trace(all, filter.get("trace")),
        }
    }

    fn has(&self, row: &Row) -> bool {
        let is = |name, holds: &dyn Fn(&str) -> bool| {
            let wanted = self.filter.get(name);
            wanted.is_empty() || holds(wanted)
        };
        let is_one_of = |ids: &HashSet<&str>| row.ids.iter().any(|id| ids.contains(id.as_str()));
        is("kind", &|kind| row.kind.as_str() == kind)
            && is("seller", &|_| {
                self.seller.is_some_and(|seller| {
                    row.seller == Some(seller)
                        || row.sellers.contains(&seller)
                        || row.kind == Kind::Mail && is_one_of(&self.of_seller)
                })
            })
            && is("about", &|_| is_one_of(&self.about))
            && is("application", &|wanted| {
                row.application.as_deref() == Some(wanted) || row.names(wanted)
            })
            && is("trace", &|trace| {
                row.trace_id.as_deref() == Some(trace)
                    || row.kind != Kind::Request && self.spans.iter().any(|span| span.has(row))
            })
    }
}

/// From a request that changed something to the next one about the same: what happens to it meanwhile came of the
/// request.
struct Span<'a> {
    ids: &'a [String],
    begin: DateTime<Utc>,
    end: Option<DateTime<Utc>>,
}

impl<'a> Span<'a> {
    fn of_trace(all: &'a [Arc<Numbered>], trace: &str) -> Vec<Self> {
        let writes = || {
            let rows = all.iter().map(|numbered| &numbered.row);
            rows.filter(|row| row.is_write)
        };
        let traced = writes().filter(|row| !trace.is_empty() && row.trace_id.as_deref() == Some(trace));
        let span = |write: &'a Row| {
            let is_next =
                |row: &&Row| row.caused_at > write.caused_at && write.ids.iter().any(|id| row.names(id));
            Self {
                ids: &write.ids,
                begin: write.caused_at,
                end: writes().filter(is_next).map(|row| row.caused_at).min(),
            }
        };
        traced.map(span).collect()
    }

    fn has(&self, row: &Row) -> bool {
        // Of a redelivery comes an attempt, of an event that occurred before.
        let is_redelivered = row
            .delivery
            .as_ref()
            .is_some_and(|delivery| self.ids.contains(delivery));
        let caused_at = if is_redelivered { row.at } else { row.caused_at };
        let is_before_end = self.end.is_none_or(|end| caused_at < end);
        caused_at >= self.begin && is_before_end && self.ids.iter().any(|id| row.names(id))
    }
}

/// Which rows are meant. An empty text means any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filter([String; FILTERS.len()]);

/// The names in a query: a seller; an order or offer, by id or number; an application; requests with a trace id, and
/// all that came of them; a kind.
const FILTERS: [&str; 5] = ["seller", "about", "application", "trace", "kind"];

impl Filter {
    pub(crate) fn of(query: &Form) -> Self {
        Self(FILTERS.map(|name| query.get(name).unwrap_or_default().trim().to_owned()))
    }

    /// The text of this name.
    pub(crate) fn get(&self, name: &str) -> &str {
        let mut all = FILTERS.iter().zip(&self.0);
        all.find(|(known, _)| **known == name)
            .map_or("", |(_, text)| text)
    }

    pub(crate) fn query(&self) -> String {
        let fields = FILTERS.iter().zip(&self.0).filter(|(_, text)| !text.is_empty());
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields).finish()
    }
}
