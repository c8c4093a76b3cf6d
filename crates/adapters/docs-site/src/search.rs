//! The search: an index over every passage of the site, made with it.
//!
//! A passage is found where every word of the query begins a word of it, of its heading or of its page's title; words of the
//! query that stand in titles, headings or paths weigh more than those in the text.

use std::fmt::Write as _;

use crate::markdown::escaped;
use crate::site::Draft;

/// Where the page of results is.
pub(crate) const PATH: &str = "/docs/search";
/// The most characters of a query that are looked at.
pub(crate) const LONGEST_QUERY: usize = 200;

const MOST_FOUND: usize = 30;
/// Characters of the text that are shown around the first word that was found.
const BEFORE: usize = 60;
const SHOWN: usize = 220;

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
        let wanted = words(query);
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<_> = self
            .passages
            .iter()
            .filter_map(|passage| Some((passage.score(&wanted, &query.to_lowercase())?, passage)))
            .collect();
        // Stable: passages that fit alike stay in the order of the site.
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.truncate(MOST_FOUND);
        found
            .into_iter()
            .map(|(_, passage)| passage.found(&wanted))
            .collect()
    }
}

impl Indexed {
    /// How well the words fit; nothing where one of them is missing.
    fn score(&self, wanted: &[String], query: &str) -> Option<usize> {
        let of = |word: &String| {
            // What each place counts, and how often at most: a long text is not better for repeating a word.
            let places = self.words.iter().zip([(40, 1), (20, 1), (1, 5)]);
            let scores = places.map(|(words, (weight, most))| {
                let whole = words.iter().filter(|other| *other == word).count();
                let begun = words
                    .iter()
                    .filter(|other| other.starts_with(word.as_str()))
                    .count();
                weight * (whole.min(most) * 3 + begun.min(most))
            });
            Some(scores.sum::<usize>()).filter(|score| *score > 0)
        };
        let words: usize = wanted.iter().map(of).sum::<Option<usize>>()?;
        let named = if self.names.contains(query) { 300 } else { 0 };
        // What a page begins with is what its title promises.
        let first = if self.heading.is_empty() { 30 } else { 0 };
        Some(words + named + first)
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
