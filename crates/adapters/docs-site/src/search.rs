//! The search: BM25 over every passage of the site. It runs on the server, so it needs no script.

use std::sync::OnceLock;

use bm25::{Document, Language, SearchEngine, SearchEngineBuilder};

use crate::sources::ASIDE;

/// The longest query, in characters; the rest is ignored.
pub(crate) const LONGEST_QUERY: usize = 200;
const MOST_FOUND: usize = 30;
const ASIDE_WEIGHT: f32 = 0.4;
/// The number of words in an excerpt, and how many of them precede the first match.
const SHOWN: usize = 40;
const BEFORE: usize = 8;

/// A searchable passage.
#[derive(Clone)]
pub(crate) struct Passage {
    /// The page's address with the passage's anchor.
    pub(crate) address: String,
    pub(crate) section: &'static str,
    pub(crate) title: String,
    pub(crate) heading: String,
    pub(crate) text: String,
}

pub(crate) struct Index {
    passages: Vec<Passage>,
    /// Built at the first search, because it would take most of the start-up time.
    engine: OnceLock<SearchEngine<usize>>,
}

/// A passage with an excerpt of its text.
pub(crate) struct SearchResult<'a> {
    pub(crate) passage: &'a Passage,
    pub(crate) excerpt: String,
}

impl Index {
    pub(crate) fn new(passages: Vec<Passage>) -> Self {
        Self {
            passages,
            engine: OnceLock::new(),
        }
    }

    fn build(&self) -> SearchEngine<usize> {
        let documents = self.passages.iter().enumerate().map(|(id, passage)| {
            let name = with_parts(&format!("{} {}", passage.title, passage.heading));
            let text = parts(&passage.text);
            // A word of a title or a heading counts three times.
            Document::new(id, format!("{name} {name} {name} {text}"))
        });
        SearchEngineBuilder::with_documents(Language::English, documents).build()
    }

    /// The passages that match the query, best first.
    pub(crate) fn search(&self, query: &str) -> Vec<SearchResult<'_>> {
        let query = with_parts(query);
        let matches = self.engine.get_or_init(|| self.build()).search(&query, None);
        let matches = matches.into_iter().filter_map(|found| {
            let id = found.document.id;
            let passage = self.passages.get(id)?;
            let weight = if ASIDE.contains(&passage.section) {
                ASIDE_WEIGHT
            } else {
                1.0
            };
            Some((found.score * weight, id, passage))
        });
        let mut matches: Vec<_> = matches.collect();
        matches.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        matches.truncate(MOST_FOUND);
        let found = matches.into_iter().map(|(_, _, passage)| SearchResult {
            passage,
            excerpt: excerpt(&passage.text, &query),
        });
        found.collect()
    }
}

/// Names such as `order_unpaid` and `order.paid` can be found as a whole and by their parts.
fn with_parts(name: &str) -> String {
    format!("{name} {}", parts(name))
}

fn parts(text: &str) -> String {
    text.replace(['_', '.', '/', '-'], " ")
}

/// An excerpt of the text around the first word of the query.
fn excerpt(text: &str, query: &str) -> String {
    let query = query.to_lowercase();
    let words: Vec<_> = text.split_whitespace().collect();
    let is_match = |word: &&str| {
        let word = word.to_lowercase();
        query.split_whitespace().any(|term| word.contains(term))
    };
    let start = words
        .iter()
        .position(is_match)
        .unwrap_or(0)
        .saturating_sub(BEFORE);
    let shown: Vec<_> = words.iter().skip(start).take(SHOWN).copied().collect();
    let before = if start > 0 { "… " } else { "" };
    let after = if start.saturating_add(SHOWN) < words.len() {
        " …"
    } else {
        ""
    };
    format!("{before}{}{after}", shown.join(" "))
}
