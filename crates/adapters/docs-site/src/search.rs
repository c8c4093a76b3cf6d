//! The search: an index over every passage of the site, made with it.
//!
//! A passage is found where every word of the query, or another word for it, begins a word of it, of its heading or of its page's title;
//! words of the query that stand in titles, headings or paths weigh more than those in the text. Where no passage has them all, those
//! are found that have the most, and at least half. Who searches here writes a program against the API: pages for who runs the
//! service come behind.

use std::fmt::Write as _;

use crate::markdown::escaped;
use crate::site::{Draft, Kind};

/// Where the page of results is.
pub(crate) const PATH: &str = "/docs/search";
/// The most characters of a query that are looked at.
pub(crate) const LONGEST_QUERY: usize = 200;

/// What people look for, and what it is called here.
const SYNONYMS: [(&str, &[&str]); 14] = [
    ("breaking", &["incompatible"]),
    ("date", &["timestamp"]),
    ("dates", &["timestamps"]),
    ("datetime", &["timestamp"]),
    ("expiry", &["ends"]),
    ("format", &["rfc"]),
    ("lifetime", &["ends"]),
    ("pagination", &["pages"]),
    ("paging", &["pages"]),
    ("quota", &["rate", "limit"]),
    ("sdk", &["clients"]),
    ("swagger", &["openapi"]),
    ("throttling", &["rate", "limit"]),
    ("ttl", &["ends"]),
];
/// Out of ten: what a word counts that stands for the one that was asked for.
const SYNONYM: usize = 8;
/// What pages that are not for integrators count less.
const ASIDE: usize = 4;

const MOST_FOUND: usize = 30;
/// Characters of the text that are shown around the first word that was found.
const BEFORE: usize = 60;
const SHOWN: usize = 220;

/// A word of a query, and the words that stand for it here, all of them together.
struct Wanted {
    word: String,
    others: &'static [&'static str],
}

impl Wanted {
    fn new(word: String) -> Self {
        let others = SYNONYMS.iter().find(|(known, _)| *known == word);
        Self {
            others: others.map_or(&[], |(_, others)| others),
            word,
        }
    }

    fn words(self) -> impl Iterator<Item = String> {
        let others = self.others.iter().map(|other| (*other).to_owned());
        std::iter::once(self.word).chain(others)
    }
}

/// Everything that can be found.
pub(crate) struct Index {
    passages: Vec<Indexed>,
}

struct Indexed {
    place: String,
    title: String,
    /// What people call the page and its passage, in lower case.
    names: String,
    kind: &'static str,
    is_aside: bool,
    heading: String,
    text: String,
    words: [Vec<String>; 3],
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The page, with the anchor of the passage.
    pub(crate) place: &'a str,
    pub(crate) title: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) heading: &'a str,
    /// Some of the text, with what was looked for marked, as HTML.
    pub(crate) shown: String,
}

impl Index {
    pub(crate) fn new(drafts: &[Draft]) -> Self {
        let of = |draft: &Draft| {
            let passages = draft.passages.iter().map(|passage| {
                let anchor = if passage.id.is_empty() {
                    String::new()
                } else {
                    format!("#{}", passage.id)
                };
                let titles = format!("{} {} {}", draft.title, draft.label, draft.path);
                Indexed {
                    place: format!("{}{anchor}", draft.path),
                    title: draft.title.clone(),
                    names: format!("{} {} {}", draft.title, draft.label, passage.heading).to_lowercase(),
                    kind: draft.kind.name(),
                    is_aside: matches!(draft.kind, Kind::Operating | Kind::Background),
                    heading: passage.heading.clone(),
                    text: passage.text.split_whitespace().collect::<Vec<_>>().join(" "),
                    words: [words(&titles), words(&passage.heading), words(&passage.text)],
                }
            });
            passages.collect::<Vec<_>>()
        };
        Self {
            passages: drafts.iter().flat_map(of).collect(),
        }
    }

    /// What fits the query, the best first.
    pub(crate) fn search(&self, query: &str) -> Vec<Found<'_>> {
        let wanted: Vec<_> = words(query).into_iter().map(Wanted::new).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<_> = self
            .passages
            .iter()
            .map(|passage| (passage.score(&wanted, &query.to_lowercase()), passage))
            .collect();
        let most = found
            .iter()
            .map(|((words, _), _)| *words)
            .max()
            .unwrap_or_default();
        if most * 2 < wanted.len() {
            return Vec::new();
        }
        found.retain(|((words, _), _)| *words > 0 && *words == most);
        // Stable: passages that fit alike stay in the order of the site.
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.truncate(MOST_FOUND);
        let wanted: Vec<_> = wanted.into_iter().flat_map(Wanted::words).collect();
        found
            .into_iter()
            .map(|(_, passage)| passage.found(&wanted))
            .collect()
    }
}

impl Indexed {
    /// How many of the words are there, and how well they fit.
    fn score(&self, wanted: &[Wanted], query: &str) -> (usize, usize) {
        let of = |word: &str| {
            // What each place counts, and how often at most: a long text is not better for repeating a word.
            let places = self.words.iter().zip([(40, 1), (30, 1), (1, 5)]);
            let scores = places.map(|(words, (weight, most))| {
                let whole = words.iter().filter(|other| is(other, word)).count();
                let begun = words.iter().filter(|other| other.starts_with(word)).count();
                weight * (whole.min(most) * 3 + begun.min(most))
            });
            scores.sum::<usize>()
        };
        let best = |wanted: &Wanted| {
            let others: Vec<_> = wanted.others.iter().map(|other| of(other)).collect();
            let others = if others.contains(&0) {
                0
            } else {
                others.into_iter().sum()
            };
            of(&wanted.word).max(others * SYNONYM / 10)
        };
        let scores: Vec<_> = wanted.iter().map(best).filter(|score| *score > 0).collect();
        let named = if self.names.contains(query) { 300 } else { 0 };
        let [_, headings, _] = &self.words;
        // A heading that has them all is about nothing else.
        let is_headed = |wanted: &Wanted| {
            let has = |word: &str| headings.iter().any(|other| is(other, word));
            has(&wanted.word) || (!wanted.others.is_empty() && wanted.others.iter().all(|other| has(other)))
        };
        let headed = if wanted.iter().all(is_headed) { 150 } else { 0 };
        // What a page begins with is what its title promises.
        let first = if self.heading.is_empty() { 30 } else { 0 };
        let score = scores.iter().sum::<usize>() + named + headed + first;
        (scores.len(), if self.is_aside { score / ASIDE } else { score })
    }

    fn found(&self, wanted: &[String]) -> Found<'_> {
        Found {
            place: &self.place,
            title: &self.title,
            kind: self.kind,
            heading: &self.heading,
            shown: marked(&self.text, wanted),
        }
    }
}

/// Whether it is this word, or more than one of it.
fn is(other: &str, word: &str) -> bool {
    other
        .strip_prefix(word)
        .is_some_and(|rest| matches!(rest, "" | "s"))
}

/// The words of a text in lower case. `order_unpaid` is one, and its parts are words too.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut words = Vec::new();
    for word in lower.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if word.contains('_') {
            words.extend(word.split('_').filter(|part| !part.is_empty()).map(str::to_owned));
        }
        if word.chars().any(char::is_alphanumeric) {
            words.push(word.to_owned());
        }
    }
    words
}

/// A piece of the text with the first word that is wanted in it, and all of them marked.
fn marked(text: &str, wanted: &[String]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut pieces: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    let fits = |piece: &str| {
        let parts = words(piece);
        wanted
            .iter()
            .any(|word| parts.iter().any(|part| part.starts_with(word.as_str())))
    };
    let first = pieces.iter().position(|piece| fits(piece)).unwrap_or_default();
    let length = |pieces: &[&str]| pieces.iter().map(|piece| piece.chars().count()).sum::<usize>();
    let mut begin = first;
    while begin > 0 && pieces.get(begin..first).map_or(0, length) < BEFORE {
        begin -= 1;
    }
    let mut html = String::from(if begin > 0 { "… " } else { "" });
    let mut shown = 0;
    for piece in pieces.get(begin..).unwrap_or_default() {
        if shown > SHOWN {
            html.push_str(" …");
            break;
        }
        shown += piece.chars().count();
        let _ = if fits(piece) {
            write!(html, "<mark>{}</mark>", escaped(piece))
        } else {
            write!(html, "{}", escaped(piece))
        };
    }
    html
}

/// The text of HTML that was made here.
pub(crate) fn text_of(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut within = false;
    for c in html.chars() {
        match c {
            '<' => within = true,
            '>' => {
                within = false;
            }
            _ if !within => text.push(c),
            _ => {}
        }
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_words_and_so_are_their_parts() {
        assert_eq!(
            words("The `order_unpaid` (409)!"),
            ["the", "order", "unpaid", "order_unpaid", "409"]
        );
        assert_eq!(words("_ __ -"), Vec::<String>::new());
    }

    #[test]
    fn a_piece_of_the_text_is_shown_and_marked() {
        let wanted = words("ship");
        assert_eq!(
            marked("It <ships> soon.", &wanted),
            "It &lt;<mark>ships</mark>&gt; soon."
        );
        let long = format!("{} ships {}", "word ".repeat(100), "word ".repeat(100));
        let shown = marked(&long, &wanted);
        assert!(
            shown.starts_with("… ") && shown.ends_with(" …") && shown.contains("<mark>ships</mark>"),
            "{shown}"
        );
    }

    #[test]
    fn the_text_of_html_is_what_is_read() {
        assert_eq!(text_of("<p>a <code>x &lt; y</code> &amp;lt;</p>"), "a x < y &lt;");
    }
}
