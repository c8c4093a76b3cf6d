//! The search: an index over every passage of the site, made with it.
//!
//! A passage is found where every word of the query, or another word for it, begins a word of it, of its heading or of its page's title;
//! words of the query that stand in titles, headings or paths weigh more than those in the text. Where few passages have them all, those
//! are added that have at least half. Words that a question is made of are passed over. Who searches here writes a program against
//! the API: pages for who runs the service, and the changelog, come behind.

use std::fmt::Write as _;

use crate::markdown::escaped;
use crate::site::{Draft, Kind};

/// Where the page of results is.
pub(crate) const PATH: &str = "/docs/search";
/// The most characters of a query that are looked at.
pub(crate) const LONGEST_QUERY: usize = 200;

/// What people look for, and what it is called here.
const SYNONYMS: [(&str, &[&str]); 18] = [
    ("breaking", &["incompatible"]),
    ("date", &["timestamp"]),
    ("datetime", &["timestamp"]),
    ("expiry", &["ends"]),
    ("format", &["rfc"]),
    ("grosze", &["minor", "unit"]),
    ("lifetime", &["ends"]),
    ("minute", &["rate", "limit"]),
    ("pagination", &["pages"]),
    ("paging", &["pages"]),
    ("quota", &["rate", "limit"]),
    ("rotation", &["rotating"]),
    ("sdk", &["clients"]),
    ("ship", &["report", "shipment"]),
    ("swagger", &["openapi"]),
    ("throttling", &["rate", "limit"]),
    ("timeout", &["time", "out"]),
    ("ttl", &["ends"]),
];
/// Words of questions that no passage is about.
const STOP_WORDS: &str = "\
    a am an and any are as at be by can could do does for from has have how i if in is it its many me \
    much must my of on or our per should support supported that the their there this to was we what \
    when where which who why will with you your";
/// Out of ten: what a word counts that stands for the one that was asked for.
const SYNONYM: usize = 8;
/// What pages that are not for integrators count less.
const ASIDE: usize = 8;

/// What it counts that the query is what a page or its passage is called, that a heading has all its words, and that a passage is
/// the first of its page.
const NAMED: usize = 2_700;
const HEADED: usize = 1_350;
const FIRST: usize = 270;

/// So many passages for integrators that have every word are enough to leave out the others.
const ENOUGH: usize = 10;
const MOST_FOUND: usize = 30;
/// Characters of the text that are shown around the first word that was found.
const BEFORE: usize = 60;
const SHOWN: usize = 220;

/// A word of a query in the singular, and the words that stand for it here, all of them together.
struct Wanted {
    word: String,
    others: &'static [&'static str],
}

impl Wanted {
    /// What a query asks for, without the words that only make it a question.
    fn all(query: &str) -> Vec<Self> {
        let all = words(query);
        let is_stop_word = |word: &String| STOP_WORDS.split(' ').any(|other| other == word);
        let telling: Vec<_> = all.iter().filter(|word| !is_stop_word(word)).cloned().collect();
        let asked = if telling.is_empty() { all } else { telling };
        asked.iter().map(|word| Self::new(singular(word))).collect()
    }

    fn new(word: &str) -> Self {
        let others = SYNONYMS.iter().find(|(known, _)| *known == word);
        Self {
            word: word.to_owned(),
            others: others.map_or(&[], |(_, others)| others),
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
                    is_aside: matches!(draft.kind, Kind::Changelog | Kind::Operating | Kind::Background),
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
        let wanted = Wanted::all(query);
        if wanted.is_empty() {
            return Vec::new();
        }
        let scores: Vec<_> = self
            .passages
            .iter()
            .map(|passage| passage.scores(&wanted))
            .collect();
        let rarities: Vec<_> = (0..wanted.len()).map(|nth| rarity(&scores, nth)).collect();
        let query = query.to_lowercase();
        let weighted = self.passages.iter().zip(&scores).map(|(passage, scores)| {
            let weighed = scores
                .iter()
                .zip(&rarities)
                .map(|(score, rarity)| score * rarity)
                .collect();
            (passage.score(&wanted, weighed, &query), passage)
        });
        let mut found: Vec<_> = weighted.collect();
        let has_all = |words: usize| words == wanted.len();
        let is_whole =
            |((words, _), passage): &&((usize, usize), &Indexed)| has_all(*words) && !passage.is_aside;
        let whole = found.iter().filter(is_whole).count();
        found.retain(|((words, _), _)| has_all(*words) || (whole < ENOUGH && *words * 2 >= wanted.len()));
        // Stable: passages that fit alike stay in the order of the site.
        found.sort_by_key(|((_, score), _)| std::cmp::Reverse(*score));
        found.truncate(MOST_FOUND);
        let wanted: Vec<_> = wanted.into_iter().flat_map(Wanted::words).collect();
        found
            .into_iter()
            .map(|(_, passage)| passage.found(&wanted))
            .collect()
    }
}

impl Indexed {
    /// How well each of the words fits; 0 where it is not there.
    fn scores(&self, wanted: &[Wanted]) -> Vec<usize> {
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
        wanted.iter().map(best).collect()
    }

    /// How many of the words are there, and how well they fit together.
    fn score(&self, wanted: &[Wanted], mut scores: Vec<usize>, query: &str) -> (usize, usize) {
        scores.retain(|score| *score > 0);
        let named = if self.names.contains(query) { NAMED } else { 0 };
        let [_, headings, _] = &self.words;
        // A heading that has them all is about nothing else.
        let is_headed = |wanted: &Wanted| {
            let has = |word: &str| headings.iter().any(|other| is(other, word));
            has(&wanted.word) || (!wanted.others.is_empty() && wanted.others.iter().all(|other| has(other)))
        };
        let headed = if wanted.iter().all(is_headed) { HEADED } else { 0 };
        // What a page begins with is what its title promises.
        let first = if self.heading.is_empty() { FIRST } else { 0 };
        let score = scores.iter().sum::<usize>() + named + headed + first;
        // Who has half of the words has a quarter of what they count.
        let share = score * scores.len().pow(2) / wanted.len().pow(2);
        (scores.len(), if self.is_aside { share / ASIDE } else { share })
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

/// What a word counts: the more, the fewer passages have it.
fn rarity(scores: &[Vec<usize>], nth: usize) -> usize {
    let has = |scores: &&Vec<usize>| scores.get(nth).is_some_and(|score| *score > 0);
    let having = scores.iter().filter(has).count();
    let ratio = scores.len().checked_div(having).unwrap_or(1);
    ratio
        .checked_ilog2()
        .map_or(1, |log| usize::try_from(log).map_or(1, |log| (log + 1).pow(2)))
}

/// Whether it is this word, or more than one of it.
fn is(other: &str, word: &str) -> bool {
    other
        .strip_prefix(word)
        .is_some_and(|rest| matches!(rest, "" | "s"))
}

/// A word of a query without the ending of more than one: what begins with it is found, and so is the one.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(one) if one.len() > 2 && !one.ends_with('s') && one.chars().all(char::is_alphabetic) => one,
        _ => word,
    }
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
