//! The pages.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod connections;
pub(crate) mod consent;
pub(crate) mod deliveries;
pub(crate) mod failure;
pub(crate) mod forgotten;
pub(crate) mod home;
pub(crate) mod links;
pub(crate) mod once;
pub(crate) mod registration;
mod scope_list;
pub(crate) mod sign_in;
pub(crate) mod sign_out;
pub(crate) mod tokens;
mod usage;
