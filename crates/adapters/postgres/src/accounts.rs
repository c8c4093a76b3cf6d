//! Accounts of sellers and operators: sellers, sessions, one-time links, operators' tokens, the audit log.

pub(crate) mod audit;
pub(crate) mod operator_tokens;
pub(crate) mod panel;
pub(crate) mod sellers;
pub(crate) mod usage;
