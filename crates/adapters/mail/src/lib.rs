//! Sends mails to buyers and sellers: over SMTP ([`SmtpMailer`]) or into a folder ([`FolderMailer`]).
//!
//! Both implement [`kernel::Mailer`] for each kind of mail. A mail has plain text and HTML in one
//! `multipart/alternative`.
//!
//! # Repeated mails
//!
//! The queue sends each mail at least once: if the process ends after the server has accepted the mail and
//! before that is recorded, the mail is sent again. All copies have the same `Message-ID`, and the same bytes
//! except `Date`, so that receivers can recognise a copy.
//!
//! # Failures
//!
//! | event | [`kernel::SendError`] |
//! |---|---|
//! | the recipient's address is malformed, or needs SMTPUTF8 (RFC 6531) and the server does not support it | `Permanent` |
//! | 5xx to the recipient, to `DATA` or to the content | `Permanent` |
//! | 530, 534, 535 or 538 at any point: the server requires other credentials (RFC 4954) | `Transient` |
//! | 5xx to the greeting, `EHLO`, `STARTTLS`, `AUTH` or the sender: the settings are wrong, not the mail | `Transient` |
//! | 4xx anywhere | `Transient` |
//! | connection failed or broken, certificate missing or invalid, answer unreadable or too late | `Transient` |
//! | the folder cannot be written | `Transient` |
//!
//! Failures caused by the settings are transient, so that a wrong password does not turn a day's mails into
//! dead letters.
//!
//! # Personal data
//!
//! Errors contain the stage, the reply code and the enhanced status code (RFC 3463). They never contain the
//! server's text, which may include the recipient's address, nor a link: an erasure cannot reach the logs.

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
