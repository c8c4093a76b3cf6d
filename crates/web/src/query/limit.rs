//! The page size, and other integers that are clamped.

use std::ops::RangeInclusive;

/// The page size where none is asked for (contract: Limits).
pub const DEFAULT_LIMIT: u16 = 50;

/// The largest page (contract: Limits).
pub const LARGEST_LIMIT: u16 = 200;

/// `-?[0-9]+` of any magnitude, clamped to the range; nothing for any other text (D17, D118).
pub(super) fn parse(text: &str, range: &RangeInclusive<u16>) -> Option<u16> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The digits are checked, so the only way for them not to parse is that there are too many.
    let magnitude = digits.parse().unwrap_or(u16::MAX);
    let signed = if digits.len() < text.len() { 0 } else { magnitude };
    Some(signed.clamp(*range.start(), *range.end()))
}
