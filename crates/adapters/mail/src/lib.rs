//! Mails to buyers and sellers: handed to an SMTP server ([`SmtpMailer`]) or laid into a folder ([`FolderMailer`]).
//!
//! Both implement [`kernel::Mailer`] for each kind of mail and render alike: plain text and HTML in one
//! `multipart/alternative`. A buyer reads in Polish which order is on its way, with which carrier, by which number and, where
//! the carrier has a page for it, the link; a seller reads in Polish and English what a one-time link to the account is for.
//!
//! # What a repeated sending looks like
//!
//! The queue sends each mail at least once: a process that ends between the server's acceptance and the note of it, or a
//! server whose acceptance is lost on the way, leads to a second sending. `Message-ID` and MIME boundary are made of the
//! mail's id, so that receiving systems can recognise the repetition; only `Date` moves. In a folder the repetition replaces
//! the file.
//!
//! # What is tried again
//!
//! | what happened | [`kernel::SendError`] |
//! |---|---|
//! | the recipient's address is malformed, or needs SMTPUTF8 (RFC 6531), which the server lacks | `Permanent` |
//! | 5xx to the recipient, to `DATA` or to the content | `Permanent` |
//! | 530, 534, 535 or 538 at any point: the server wants other credentials (RFC 4954) | `Transient` |
//! | 5xx to the greeting, `EHLO`, `STARTTLS`, `AUTH` or the sender: the settings are wrong, not the mail | `Transient` |
//! | 4xx anywhere | `Transient` |
//! | no connection, a broken one, no or a bad certificate, an unreadable answer, no answer in time | `Transient` |
//! | the folder cannot be written | `Transient` |
//!
//! What the settings cause is transient, because one wrong password must not turn a day's mails into dead letters; the
//! queue's schedule leaves time to mend it.
//!
//! # Personal data
//!
//! Errors tell the stage, the reply code and the enhanced status code (RFC 3463), never the server's words: those repeat the
//! recipient's address, and logs are out of reach of an erasure. They never tell a link either.

mod account;
mod address;
mod folder;
mod letter;
mod settings;
mod shipment;
mod smtp;

pub use folder::FolderMailer;
pub use settings::{Credentials, Security, SenderSettings, SettingsError, SmtpSettings};
pub use smtp::SmtpMailer;
