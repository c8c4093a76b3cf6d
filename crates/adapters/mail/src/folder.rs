//! Mails as files: the sandbox's outbox.

use std::{
    fs::create_dir_all,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use kernel::{Clock, Mailer, SendError};
use oauth::AccountMail;
use orders::ShipmentMail;
use tempfile::Builder;
use tokio::task::spawn_blocking;

use crate::{
    SenderSettings, SettingsError,
    letter::{LetterWriter, Told},
};

/// Lays each mail into a folder, as `<mail id>.eml`, readable by its owner alone.
///
/// A file appears whole, since it is written under another name (`.*.tmp`) and then renamed; a repeated sending replaces it
/// (D108, D120). Files are not synced: a crash of the machine may lose the last ones, a crash of the process does not.
pub struct FolderMailer {
    writer: LetterWriter,
    folder: PathBuf,
}

impl FolderMailer {
    /// Mails of `sender` into `folder`, which is made when the first mail comes.
    pub fn new(
        sender: &SenderSettings,
        folder: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            writer: LetterWriter::new(sender, clock)?,
            folder: folder.into(),
        })
    }

    async fn deliver(&self, mail: &impl Told) -> Result<(), SendError> {
        let letter = self.writer.write(mail)?;
        let folder = self.folder.clone();
        let name = format!("{}.eml", mail.id());
        let written = spawn_blocking(move || lay(&folder, &name, &letter.bytes)).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(SendError::Transient(Box::new(failure))),
            Err(ended) => Err(SendError::Transient(Box::new(ended))),
        }
    }
}

#[async_trait]
impl Mailer<ShipmentMail> for FolderMailer {
    async fn send(&self, mail: &ShipmentMail) -> Result<(), SendError> {
        self.deliver(mail).await
    }
}

#[async_trait]
impl Mailer<AccountMail> for FolderMailer {
    async fn send(&self, mail: &AccountMail) -> Result<(), SendError> {
        self.deliver(mail).await
    }
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the mail folder cannot be written")]
struct Unwritten(#[from] io::Error);

/// Two sendings of one mail at the same time do not disturb each other: each has a temporary file of its own.
fn lay(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Unwritten> {
    create_dir_all(folder)?;
    let mut file = Builder::new().prefix(".").suffix(".tmp").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(folder.join(name)).map_err(|refused| refused.error)?;
    Ok(())
}
