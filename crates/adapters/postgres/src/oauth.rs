//! OAuth: applications, consents, and the families of tokens that come of them.

pub(crate) mod applications;
pub(crate) mod client_tokens;
pub(crate) mod consents;
pub(crate) mod tokens;
