//! The search: BM25 over every passage of the site. It runs on the server, so it needs no script.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::OnceLock;

use snowball_stemmers_rs::{Algorithm, Stemmer};

use crate::markdown::CODE;
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
/// BM25's k1 and b, with their usual values.
const SATURATION: f32 = 1.2;
const LENGTH_WEIGHT: f32 = 0.75;
/// Weight of a match in a title or heading.
const NAME_WEIGHT: f32 = 3.0;
/// Separators of the parts of an identifier.
const SEPARATORS: [char; 2] = ['_', '.'];
/// Ignored words. Single letters are ignored too.
const STOP_WORDS: &str = "am an and any are as at be been but by can did do does doesn don for from had has have he her his how if in \
                          into is isn it its me my no nor not of off on or our own re she should so some such than that the their \
                          them then there these they this those to too ve very was we were what when where which while who whom \
                          why will with you your";

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
    stems: OnceLock<Stems>,
}

/// For each stem, the positions of the passages that have it, and its share in their scores without the
/// factor of its rarity.
type Stems = HashMap<String, Vec<(usize, f32)>>;

/// The passages that match a query.
pub(crate) struct SearchResults<'a> {
    /// First the pages for integrators, in a group without a name, then a group per section in `ASIDE`. The
    /// best result of a group is first.
    pub(crate) groups: Vec<(&'static str, Vec<SearchResult<'a>>)>,
    /// Whether they have all words of the query, or only some because no passage has all.
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
            stems: OnceLock::new(),
        }
    }

    fn build(&self) -> Stems {
        let counted = self.passages.iter().map(|passage| {
            let mut counts = HashMap::<_, f32>::new();
            let name = format!("{} {}", passage.title, passage.heading).to_lowercase();
            for (text, weight) in [(name, NAME_WEIGHT), (passage.text.to_lowercase(), 1.0)] {
                for word in words(&text) {
                    *counts.entry(stem(word)).or_default() += weight;
                }
            }
            (counts.values().sum::<f32>(), counts)
        });
        let counted: Vec<_> = counted.collect();
        let mean_length = counted.iter().map(|(length, _)| length).sum::<f32>() / number(counted.len());
        let mut stems = Stems::new();
        for (id, (length, counts)) in counted.into_iter().enumerate() {
            let norm = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / mean_length);
            for (stem, count) in counts {
                stems.entry(stem).or_default().push((id, count / (count + norm)));
            }
        }
        stems
    }

    /// The passages with all words of the query, or, if there are none, with any of them.
    pub(crate) fn search(&self, query: &str) -> SearchResults<'_> {
        let query = query.to_lowercase();
        let mut seen = HashSet::new();
        let words = words(&query).filter(|word| seen.insert(*word));
        let words: Vec<_> = words.take(MOST_WORDS).collect();
        let (scores, has_all_words) = self.scores(&words);
        let mut scores: Vec<_> = scores.into_iter().collect();
        scores.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
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

    /// The score of each passage that has all of these words; or of each that has any, and false.
    fn scores(&self, words: &[&str]) -> (HashMap<usize, f32>, bool) {
        let stems = self.stems.get_or_init(|| self.build());
        // The score, and the number of words.
        let mut found = HashMap::<_, (f32, usize)>::new();
        for word in words {
            let passages = stems.get(&stem(word)).map_or(&[][..], Vec::as_slice);
            let (having, all) = (number(passages.len()), number(self.passages.len()));
            let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
            for (id, share) in passages {
                let (score, had) = found.entry(*id).or_default();
                *score += rarity * share;
                *had += 1;
            }
        }
        let has_all_words = found.values().any(|(_, had)| *had == words.len());
        found.retain(|_, (_, had)| !has_all_words || *had == words.len());
        let scores = found.into_iter().map(|(id, (score, _))| (id, score));
        (scores.collect(), has_all_words)
    }
}

/// The words of a text in lower case. A name such as `order_unpaid` or `order.paid` is followed by its parts.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split(|c: char| !(c.is_alphanumeric() || SEPARATORS.contains(&c)));
    let words = names.map(|name| name.trim_matches(SEPARATORS)).flat_map(|name| {
        let whole = Some(name).filter(|name| name.contains(SEPARATORS));
        whole.into_iter().chain(name.split(SEPARATORS))
    });
    words.filter(|word| word.len() > 1 && STOP_WORDS.split(' ').all(|other| other != *word))
}

fn stem(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

fn number(count: usize) -> f32 {
    u16::try_from(count).unwrap_or(u16::MAX).into()
}

/// An excerpt of the text around the first of these words of a query: with code only if none is in the prose.
fn excerpt(text: &str, query: &[&str]) -> String {
    let is_match = |word: &&str| {
        let word = word.to_lowercase();
        query.iter().any(|term| word.contains(term))
    };
    let parts = text.split(CODE);
    let mut words: Vec<_> = parts.clone().step_by(2).flat_map(str::split_whitespace).collect();
    let with_code: Vec<_> = parts.flat_map(str::split_whitespace).collect();
    if !words.iter().any(is_match) && with_code.iter().any(is_match) {
        words = with_code;
    }
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
