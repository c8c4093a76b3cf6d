//! The search: BM25 over every passage of the site. It runs on the server, so it needs no script.

use std::collections::HashSet;
use std::sync::OnceLock;

use bm25::{DefaultTokenizer, Document, Language, SearchEngine, SearchEngineBuilder, Tokenizer as _};

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

/// The passages that match a query, best first.
pub(crate) struct SearchResults<'a> {
    pub(crate) found: Vec<SearchResult<'a>>,
    /// Whether they have all words of the query. If no passage has, they have some.
    pub(crate) has_all_words: bool,
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

    /// The passages with all words of the query, or, if there are none, with any of them.
    pub(crate) fn search(&self, query: &str) -> SearchResults<'_> {
        let engine = self.engine.get_or_init(|| self.build());
        let all = with_all_words(engine, query);
        let has_all_words = !all.is_empty();
        let query = with_parts(query);
        let mut matches = engine.search(&query, None);
        matches.retain(|found| !has_all_words || all.contains(&found.document.id));
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
        SearchResults {
            found: found.collect(),
            has_all_words,
        }
    }
}

/// The ids of the passages that have every word of the query but those without a meaning of their own, such as "how".
fn with_all_words(engine: &SearchEngine<usize>, query: &str) -> HashSet<usize> {
    let tokenizer = DefaultTokenizer::new(Language::English);
    let query = parts(query);
    let words = query.split_whitespace();
    let words = words.filter(|word| !tokenizer.tokenize(word).is_empty());
    let having = |word: &str| {
        let found = engine.search(word, None).into_iter();
        found.map(|found| found.document.id).collect::<HashSet<_>>()
    };
    words
        .map(having)
        .reduce(|one, other| &one & &other)
        .unwrap_or_default()
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
