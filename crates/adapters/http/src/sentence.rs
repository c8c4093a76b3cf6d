//! The domain's refusals as messages for developers.

use kernel::Invalid;

/// "must be a UUID" as "Must be a UUID.".
pub(crate) fn of(reason: &Invalid) -> String {
    let reason = reason.to_string();
    let mut letters = reason.chars();
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
        assert_eq!(of(&Invalid::new("must be a UUID")), "Must be a UUID.");
        assert_eq!(of(&Invalid::new("")), "");
    }
}
