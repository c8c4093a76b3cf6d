//! What the panel keeps: sessions, one-time links, what is shown once, mails about accounts, the audit log, usage.

mod account_mails;
mod audit;
mod flashes;
mod links;
mod reader;
mod sessions;
mod store;
mod usage;

pub(crate) use account_mails::AccountMails;
pub(crate) use audit::Audit;
pub(crate) use reader::Panel;
pub(crate) use usage::Usage;
