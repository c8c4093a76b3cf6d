//! Phrases, such as the domain's refusals, as messages for people.

use std::fmt::Display;

/// "must be a UUID" as "Must be a UUID.".
pub fn of(phrase: &(impl Display + ?Sized)) -> String {
    let phrase = phrase.to_string();
    let mut letters = phrase.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predicate_becomes_a_sentence() {
        assert_eq!(of("must be a UUID"), "Must be a UUID.");
        assert_eq!(of(""), "");
    }
}
