//! An error with its causes, as one line.

use std::error::Error;

/// The error's text and those of its causes, but for what the text before them tells already.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
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
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot look");
        assert_eq!(told(error.as_ref()), "cannot look: cannot connect: refused");
    }
}
