//! An error with its causes in one line.

use std::error::Error;

/// The messages of an error and its causes, without those that an outer message repeats.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_named_once() {
        let error = anyhow::anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot look");
        assert_eq!(describe(error.as_ref()), "cannot look: cannot connect: refused");
    }
}
