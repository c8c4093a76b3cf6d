//! How a range of sizes is said in a message.

use std::ops::RangeInclusive;

/// "4 to 64 characters", "at least 1 element"; nothing where any number will do.
pub(super) fn counted(range: &RangeInclusive<usize>, noun: &str) -> Option<String> {
    let (count, last) = match (*range.start(), *range.end()) {
        (0, usize::MAX) => return None,
        (least, usize::MAX) => (format!("at least {least}"), least),
        (0, most) => (format!("at most {most}"), most),
        (least, most) if least == most => (format!("exactly {least}"), least),
        (least, most) => (format!("{least} to {most}"), most),
    };
    Some(format!("{count} {noun}{}", if last == 1 { "" } else { "s" }))
}
