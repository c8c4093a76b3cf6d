//! Tolerant reading of what carriers send.

pub(crate) mod codes;
pub(crate) mod history;
pub(crate) mod json;
pub(crate) mod times;
