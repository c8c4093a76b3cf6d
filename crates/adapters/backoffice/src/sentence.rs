//! The domain's refusals as messages for developers.

use kernel::Invalid;

/// "must be a UUID" as "Must be a UUID.".
pub(crate) fn of(reason: &Invalid) -> String {
    capitalised(&reason.to_string())
}

/// A phrase as a sentence.
pub(crate) fn capitalised(phrase: &str) -> String {
    let mut letters = phrase.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

/// A rule of the domain that refuses in sentences.
pub(crate) fn rule<G, T>(check: impl Fn(G) -> Result<T, Invalid>) -> impl Fn(G) -> Result<T, String> {
    move |given| check(given).map_err(|reason| of(&reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predicate_becomes_a_sentence() {
        assert_eq!(of(&Invalid::new("must be a UUID")), "Must be a UUID.");
        assert_eq!(of(&Invalid::new("")), "");
    }
}
