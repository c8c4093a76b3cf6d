//! The search: BM25 over every passage of the site. It runs on the server, so it needs no script.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::iter;
use std::sync::OnceLock;

use bm25::{
    DefaultTokenizer, Embedder, EmbedderBuilder, Embedding, Language, ScoredDocument, Scorer,
    TokenEmbedder as _, TokenEmbedding, Tokenizer as _,
};

use crate::sources::ASIDE;

/// The longest query, in characters; the rest is ignored.
pub(crate) const LONGEST_QUERY: usize = 200;
/// The number of distinct words that are searched for; the rest is ignored.
const MOST_WORDS: usize = 8;
/// The number of results in a group.
const MOST_FOUND: usize = 30;
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
    engine: OnceLock<Engine>,
}

struct Engine {
    tokenizer: DefaultTokenizer,
    /// Knows the passages by their position.
    scorer: Scorer<usize>,
}

/// The passages that match a query.
pub(crate) struct SearchResults<'a> {
    /// What integrators read, without a name, then each section in `ASIDE`. Within a group the best is first.
    pub(crate) groups: Vec<(&'static str, Vec<SearchResult<'a>>)>,
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

    fn build(&self) -> Engine {
        let texts = self.passages.iter().map(|passage| {
            let name = with_parts(&format!("{} {}", passage.title, passage.heading));
            let text = parts(&passage.text);
            // A word of a title or a heading counts three times.
            format!("{name} {name} {name} {text}")
        });
        let texts: Vec<_> = texts.collect();
        let corpus: Vec<_> = texts.iter().map(String::as_str).collect();
        let embedder: Embedder = EmbedderBuilder::with_fit_to_corpus(Language::English, &corpus).build();
        let mut scorer = Scorer::new();
        for (id, text) in corpus.into_iter().enumerate() {
            scorer.upsert(&id, embedder.embed(text));
        }
        Engine {
            tokenizer: DefaultTokenizer::new(Language::English),
            scorer,
        }
    }

    /// The passages with all words of the query, or, if there are none, with any of them.
    pub(crate) fn search(&self, query: &str) -> SearchResults<'_> {
        let engine = self.engine.get_or_init(|| self.build());
        let (scores, has_all_words) = engine.scores(query);
        let mut scores: Vec<_> = scores.into_iter().collect();
        scores.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let query = with_parts(query).to_lowercase();
        let words = distinct(query.split_whitespace());
        let found = scores.iter().filter_map(|(id, _)| self.passages.get(*id));
        let groups = iter::once("").chain(ASIDE).map(|name| {
            let of_group = found.clone().filter(|passage| match name {
                "" => !ASIDE.contains(&passage.section),
                name => passage.section == name,
            });
            let results = of_group.take(MOST_FOUND).map(|passage| SearchResult {
                passage,
                excerpt: excerpt(&passage.text, &words),
            });
            (name, results.collect::<Vec<_>>())
        });
        SearchResults {
            groups: groups.filter(|(_, results)| !results.is_empty()).collect(),
            has_all_words,
        }
    }
}

impl Engine {
    /// The score of each passage that has all words of the query but those without a meaning of their own, such as "how"; or of each that has
    /// any, and false.
    fn scores(&self, query: &str) -> (HashMap<usize, f32>, bool) {
        let required = self.tokenizer.tokenize(&parts(query));
        let whole = self.tokenizer.tokenize(query);
        let words = distinct(required.iter().chain(&whole));
        let is_required = |word: &&String| required.contains(word);
        let wanted = words.iter().copied().filter(is_required).count();
        // The score, and the number of required words.
        let mut found = HashMap::<_, (f32, usize)>::new();
        for word in words {
            let index = u32::embed(word);
            let query = Embedding(vec![TokenEmbedding { index, value: 1.0 }]);
            for ScoredDocument { id, score } in self.scorer.matches(&query) {
                let (sum, had) = found.entry(id).or_default();
                *sum += score;
                *had += usize::from(is_required(&word));
            }
        }
        let has_all_words = found.values().any(|(_, had)| *had == wanted);
        found.retain(|_, (_, had)| !has_all_words || *had == wanted);
        let scores = found.into_iter().map(|(id, (score, _))| (id, score));
        (scores.collect(), has_all_words)
    }
}

/// The first distinct words.
fn distinct<T: Copy + Eq + Hash>(words: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(*word)).take(MOST_WORDS).collect()
}

/// Names such as `order_unpaid` and `order.paid` can be found as a whole and by their parts.
fn with_parts(name: &str) -> String {
    format!("{name} {}", parts(name))
}

fn parts(text: &str) -> String {
    text.replace(['_', '.', '/', '-'], " ")
}

/// An excerpt of the text around the first of these words of a query.
fn excerpt(text: &str, query: &[&str]) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let is_match = |word: &&str| {
        let word = word.to_lowercase();
        query.iter().any(|term| word.contains(term))
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
