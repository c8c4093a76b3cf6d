//! Writes mails to files: the sandbox's outbox.

use std::fs::create_dir_all;
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Clock, Mailer, SendError};
use tempfile::{Builder, NamedTempFile};
use tokio::task::spawn_blocking;

use crate::message::{Content, Renderer};
use crate::{SenderSettings, SettingsError};

/// Writes each mail to `<mail id>.eml` in a folder, readable only by the file's owner.
///
/// The file is written under a temporary name (`.*.tmp`) and renamed, so it is never incomplete. Sending
/// again replaces it (D108, D120). Files are not synced: a crash of the machine may lose the last ones, a
/// crash of the process does not.
pub struct FolderMailer {
    renderer: Renderer,
    folder: PathBuf,
}

impl FolderMailer {
    /// Fails where no mail could be written. Creates the folder.
    pub fn check(folder: &Path) -> io::Result<()> {
        create_dir_all(folder)?;
        temporary(folder).map(drop)
    }

    /// The first mail creates the folder.
    pub fn new(
        sender: &SenderSettings,
        folder: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            renderer: Renderer::new(sender, clock)?,
            folder: folder.into(),
        })
    }
}

#[async_trait]
impl<M: Content> Mailer<M> for FolderMailer {
    async fn send(&self, mail: &M) -> Result<(), SendError> {
        let message = self.renderer.render(mail)?;
        let (folder, name) = (self.folder.clone(), format!("{}.eml", mail.id()));
        let written = spawn_blocking(move || write(&folder, &name, &message.bytes)).await;
        match written {
            Ok(written) => written.map_err(|error| SendError::Transient(Box::new(error))),
            Err(panicked) => Err(SendError::Transient(Box::new(panicked))),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the mail folder cannot be written")]
struct WriteError(#[from] io::Error);

/// Each call uses a separate temporary file, so that concurrent writes of one mail do not interfere.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
    create_dir_all(folder)?;
    let mut file = temporary(folder)?;
    file.as_file_mut().write_all(bytes)?;
    file.persist(folder.join(name)).map_err(|refused| refused.error)?;
    Ok(())
}

/// Deleted unless it is renamed. An error does not have its name: equal failures are logged once.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let made = Builder::new().prefix(".").suffix(".tmp").tempfile_in(folder);
    made.map_err(|error| error.kind().into())
}
