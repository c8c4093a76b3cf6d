//! What the panel keeps: sessions, links, flashes, mails about accounts, the audit log, usage.

mod store;
