//! Consents, and the families of tokens that come of them.

mod connections;
mod consents;
mod families;
mod issuing;
mod reader;
mod rows;
mod store;

pub(crate) use reader::Grants;
