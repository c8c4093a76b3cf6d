//! Consents, and the families of tokens that come of them.

mod store;
