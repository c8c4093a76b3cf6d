//! Secrets that the panel shows once: they wait, sealed and bound to the session, for the page that shows them.
//!
//! They wait under the one-time number of the form that asked for them. The number is taken before anything is done, so that
//! a form sent twice acts once, and both of its answers lead to the same page.

use kernel::{Purpose, Randomness, Sealer, StoreError};
use oauth::{ClientId, FamilyId, PanelStore, SecretHash};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What is shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Shown {
    /// An application was registered; a public one has no secret.
    Registered(ClientId, Option<String>),
    /// An application's secret was replaced.
    Rotated(ClientId, String),
    /// A personal token was made.
    Token(FamilyId, String),
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, id) = match self {
            Self::Registered(id, _) => ("Registered", id.to_string()),
            Self::Rotated(id, _) => ("Rotated", id.to_string()),
            Self::Token(id, _) => ("Token", id.to_string()),
        };
        f.debug_tuple(name).field(&id).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
enum Sealed {
    Registered(Uuid, Option<String>),
    Rotated(Uuid, String),
    Token(Uuid, String),
}

/// A form of a session.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// The session.
    pub session: SecretHash,
    /// The form's one-time number.
    pub form: Uuid,
    /// Seals what waits.
    pub sealer: &'a dyn Sealer,
}

impl std::fmt::Debug for Sent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sent")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

impl Sent<'_> {
    fn binding(&self) -> Vec<u8> {
        [self.session.bytes().as_slice(), self.form.as_bytes()].concat()
    }

    /// Keeps what will be shown; false when the form was sent before: then nothing else may be done.
    pub async fn keep(self, panel: &dyn PanelStore, shown: &Shown) -> Result<bool, StoreError> {
        let sealed = match shown {
            Shown::Registered(id, secret) => Sealed::Registered(id.uuid(), secret.clone()),
            Shown::Rotated(id, secret) => Sealed::Rotated(id.uuid(), secret.clone()),
            Shown::Token(id, token) => Sealed::Token(id.uuid(), token.clone()),
        };
        let plain = serde_json::to_vec(&sealed).map_err(StoreError::unexpected)?;
        let sealed = self.sealer.seal(Purpose::Flash, &self.binding(), &plain);
        panel.keep_flash(self.session, self.form, Some(sealed)).await
    }

    /// Takes what was kept; nothing when there is none, or it was taken, or its key is gone.
    pub async fn take(self, panel: &dyn PanelStore) -> Result<Option<Shown>, StoreError> {
        let sealed = panel.take_flash(self.session, self.form).await?;
        Ok(sealed.and_then(|sealed| self.opened(&sealed)))
    }

    fn opened(&self, sealed: &[u8]) -> Option<Shown> {
        let plain = self.sealer.open(Purpose::Flash, &self.binding(), sealed).ok()?;
        Some(match serde_json::from_slice(&plain).ok()? {
            Sealed::Registered(id, secret) => Shown::Registered(id.into(), secret),
            Sealed::Rotated(id, secret) => Shown::Rotated(id.into(), secret),
            Sealed::Token(id, token) => Shown::Token(id.into(), token),
        })
    }
}

/// Chance drawn beforehand, so that what is to be shown can be kept before the deed that makes it is done.
#[derive(Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) id: Uuid,
    pub(crate) secret: [u8; 32],
}

impl Drawn {
    pub(crate) fn from(randomness: &dyn Randomness) -> Self {
        Self {
            id: randomness.uuid(),
            secret: randomness.secret(),
        }
    }
}

impl Randomness for Drawn {
    fn secret(&self) -> [u8; 32] {
        self.secret
    }

    fn uuid(&self) -> Uuid {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use kernel::{MockSealer, SealError};
    use oauth::MockPanelStore;

    use super::*;

    /// Puts the binding before the plain text.
    fn sealer() -> MockSealer {
        let mut sealer = MockSealer::new();
        sealer
            .expect_seal()
            .withf(|purpose, _, _| *purpose == Purpose::Flash)
            .returning(|_, bound, plain| [bound, plain].concat());
        sealer
            .expect_open()
            .returning(|_, bound, sealed| Ok(sealed.strip_prefix(bound).ok_or(SealError)?.to_vec()));
        sealer
    }

    #[tokio::test]
    async fn what_is_kept_opens_for_its_session_and_form_alone() {
        let sealer = sealer();
        let sent = |session: &str, form: u128| Sent {
            session: SecretHash::of(session),
            form: Uuid::from_u128(form),
            sealer: &sealer,
        };
        let id = Uuid::from_u128(9);
        for shown in [
            Shown::Registered(id.into(), Some("pss_x".to_owned())),
            Shown::Registered(id.into(), None),
            Shown::Rotated(id.into(), "pss_y".to_owned()),
            Shown::Token(id.into(), "ps_pt_z".to_owned()),
        ] {
            let kept = std::sync::Arc::new(std::sync::Mutex::new(None));
            let (mut store, there) = (MockPanelStore::new(), kept.clone());
            store.expect_keep_flash().once().returning(move |_, _, sealed| {
                *there.lock().unwrap() = sealed;
                Ok(true)
            });
            store
                .expect_take_flash()
                .returning(move |_, _| Ok(kept.lock().unwrap().clone()));
            assert!(sent("mine", 1).keep(&store, &shown).await.unwrap());
            assert_eq!(sent("mine", 1).take(&store).await.unwrap(), Some(shown.clone()));
            assert_eq!(sent("other", 1).take(&store).await.unwrap(), None);
            assert_eq!(sent("mine", 2).take(&store).await.unwrap(), None);
            assert!(!format!("{shown:?}").contains("pss_"), "{shown:?}");
        }
    }
}
