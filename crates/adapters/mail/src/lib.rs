//! Mails to buyers and sellers: sent to an SMTP server ([`SmtpMailer`]) or written to a folder ([`FolderMailer`]).
//!
//! Both implement [`kernel::Mailer`] for each kind of mail, and render plain text and HTML in one `multipart/alternative`.
//!
//! # Repeated mails
//!
//! The queue sends each mail at least once: if the process ends between the server's acceptance and the record of it, the mail
//! is sent again. Every sending of a mail has the same `Message-ID` and the same bytes but for `Date`, so that receivers can
//! recognise the repetition.
//!
//! # Failures
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
//! Failures caused by the settings are transient: a wrong password must not turn a day's mails into dead letters.
//!
//! # Personal data
//!
//! Errors hold the stage, the reply code and the enhanced status code (RFC 3463), never the server's text, which repeats the
//! recipient's address, and never a link: logs are out of reach of an erasure.

mod account;
mod address;
mod folder;
mod message;
mod settings;
mod shipment;
mod smtp;

pub use folder::FolderMailer;
pub use settings::{Credentials, Security, SenderSettings, SettingsError, SmtpSettings};
pub use smtp::SmtpMailer;
