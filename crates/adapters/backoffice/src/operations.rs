//! The calls, one file for each group.

pub(crate) mod applications;
pub(crate) mod changes;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod links;
pub(crate) mod moderation;
pub(crate) mod offers;
pub(crate) mod orders;
pub(crate) mod personal_tokens;
pub(crate) mod sellers;
