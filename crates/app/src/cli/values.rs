//! The kinds of value that arguments have, refused in words that say what to give.

use uuid::Uuid;

/// An id.
pub(super) fn id(text: &str) -> Result<Uuid, String> {
    text.parse()
        .map_err(|_| "must be an id such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e".to_owned())
}
