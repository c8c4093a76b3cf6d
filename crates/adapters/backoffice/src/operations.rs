//! The calls, one file for each group.

pub(crate) mod applications;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod offers;
pub(crate) mod personal_tokens;
pub(crate) mod sellers;
