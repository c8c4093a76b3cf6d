//! Client authentication (RFC 6749 §2.3): is the caller the application that it says it is?

use crate::{Application, ApplicationStatus, ClientType, SecretHash};

/// Why a client is refused. Its words go to the caller: they tell nothing of which part of the credentials is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClient {
    /// Unknown application or wrong secret.
    #[error("unknown client_id or wrong client_secret")]
    Credentials,
    /// A confidential client came without its secret.
    #[error("this client is confidential: send its client_secret, by HTTP Basic or in the body")]
    SecretMissing,
    /// The application is suspended.
    #[error("this application is suspended")]
    Suspended,
    /// The application or the account has ended, or been narrowed, since the client was authenticated.
    #[error("this application has been suspended, deleted or narrowed meanwhile")]
    Meanwhile,
}

/// Checks what a client presents of itself. An empty secret is none. A public client may come without a secret; one that it
/// sends all the same is wrong, since it has none. The secret is compared before the status is told to anybody.
pub fn authenticate(application: Option<&Application>, secret: Option<&str>) -> Result<(), InvalidClient> {
    let secret = secret.filter(|secret| !secret.is_empty());
    let application = application.ok_or(InvalidClient::Credentials)?;
    match (application.client_type, secret) {
        (ClientType::Public, None) => {}
        (ClientType::Confidential, None) => return Err(InvalidClient::SecretMissing),
        (_, Some(presented)) => {
            if application.secret != Some(SecretHash::of(presented)) {
                return Err(InvalidClient::Credentials);
            }
        }
    }
    if application.status == ApplicationStatus::Suspended {
        return Err(InvalidClient::Suspended);
    }
    Ok(())
}
