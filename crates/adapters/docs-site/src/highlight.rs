//! Colours in code: strings, comments, numbers and the keys of objects, by classes alone.
//!
//! A grammar for each language would weigh more than the rest of the site; these four are what helps in examples.

use std::fmt::Write as _;

use crate::markdown::escaped;

/// How a language writes what is coloured.
struct Rules {
    comment: Option<&'static str>,
    /// What strings stand between.
    quotes: &'static [char],
    /// Whether a string may go on in the next line.
    long_strings: bool,
    /// Whether a string before a colon is a key, and bare words are values.
    data: bool,
}

const NONE: Rules = Rules {
    comment: None,
    quotes: &[],
    long_strings: false,
    data: false,
};

fn rules(language: &str) -> Rules {
    let (comment, quotes): (_, &'static [char]) = match language {
        "json" => (None, &['"']),
        "sh" | "toml" | "yaml" | "ruby" | "python" => (Some("#"), &['"', '\'']),
        "js" | "javascript" | "typescript" | "ts" | "go" | "java" | "php" => (Some("//"), &['"', '\'', '`']),
        _ => return NONE,
    };
    Rules {
        comment,
        quotes,
        long_strings: language == "sh",
        data: language == "json",
    }
}

/// The code as HTML.
pub(crate) fn html(language: &str, code: &str) -> String {
    let rules = rules(language);
    let mut html = String::with_capacity(code.len().saturating_mul(2));
    let mut rest = code;
    // Between two words: there alone a comment or a number begins.
    let mut fresh = true;
    while let Some(first) = rest.chars().next() {
        let (class, length) = token(&rules, rest, first, fresh);
        let (taken, after) = rest.split_at(length);
        let _ = match class {
            "" => write!(html, "{}", escaped(taken)),
            class => write!(html, "<span class=\"tok-{class}\">{}</span>", escaped(taken)),
        };
        fresh = taken
            .chars()
            .next_back()
            .is_none_or(|last| !last.is_alphanumeric() && last != '$' && last != '_');
        rest = after;
    }
    html
}

/// The class of what the text begins with, and its length in bytes.
fn token(rules: &Rules, rest: &str, first: char, fresh: bool) -> (&'static str, usize) {
    let until = |end: fn(char) -> bool| rest.find(end).unwrap_or(rest.len());
    if fresh && rules.comment.is_some_and(|mark| rest.starts_with(mark)) {
        return ("c", until(|c| c == '\n'));
    }
    if rules.quotes.contains(&first)
        && let Some(length) = string(rest, first, rules.long_strings)
    {
        let after = rest.get(length..).unwrap_or_default();
        let key = rules.data && after.trim_start().starts_with(':');
        return (if key { "k" } else { "s" }, length);
    }
    if rules.data && fresh && (first.is_ascii_alphanumeric() || first == '-') {
        return ("n", until(|c| !c.is_ascii_alphanumeric() && !"+-.".contains(c)));
    }
    if first.is_alphanumeric() {
        return ("", until(|c| !c.is_alphanumeric()));
    }
    ("", first.len_utf8())
}

/// The length of the string that the text begins with; none where it does not end.
fn string(text: &str, quote: char, long: bool) -> Option<usize> {
    let mut escaping = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaping => escaping = false,
            '\\' => escaping = true,
            '\n' if !long => return None,
            _ if c == quote => return Some(at.saturating_add(1)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_keys_strings_and_values() {
        assert_eq!(
            html("json", r#"{"a": [-1.5, true, "x\"<"]}"#),
            "{<span class=\"tok-k\">\"a\"</span>: [<span class=\"tok-n\">-1.5</span>, <span class=\"tok-n\">true</span>, \
             <span class=\"tok-s\">\"x\\\"&lt;\"</span>]}"
        );
    }

    #[test]
    fn a_shell_has_comments_at_the_beginning_of_words() {
        assert_eq!(
            html("sh", "x=$# # it's\ny='a\nb'"),
            "x=$# <span class=\"tok-c\"># it's</span>\ny=<span class=\"tok-s\">'a\nb'</span>"
        );
        assert_eq!(html("sh", "echo it's"), "echo it's");
    }

    #[test]
    fn what_is_no_known_language_is_text() {
        assert_eq!(html("", "a \"b\" # <c>"), "a \"b\" # &lt;c&gt;");
    }
}
