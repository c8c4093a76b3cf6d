//! Secrets that the panel shows once: they wait, sealed and bound to the session, for the page that shows them.
//!
//! They wait under the one-time number of the form that asked for them, so that both answers to a form sent twice lead to the
//! same page.

use accounts::AccountStore;
use kernel::{Purpose, Randomness, Sealer, StoreError};
use oauth::{ClientId, FamilyId, SecretHash};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Failure;
use crate::sent_form::{NumberUsed, SentForm};

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

/// A form that asks for something to be shown once.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// The form.
    pub form: SentForm,
    /// Seals what waits.
    pub sealer: &'a dyn Sealer,
}

impl std::fmt::Debug for Sent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sent")
            .field("form", &self.form.number)
            .finish_non_exhaustive()
    }
}

impl Sent<'_> {
    /// Takes the form's number and keeps what will be shown. Where that is refused nothing else may be done.
    pub(crate) async fn keep<R: From<NumberUsed>>(
        self,
        accounts: &dyn AccountStore,
        shown: &Shown,
    ) -> Result<(), Failure<R>> {
        let sealed = match shown {
            Shown::Registered(id, secret) => Sealed::Registered(id.uuid(), secret.clone()),
            Shown::Rotated(id, secret) => Sealed::Rotated(id.uuid(), secret.clone()),
            Shown::Token(id, token) => Sealed::Token(id.uuid(), token.clone()),
        };
        let plain = serde_json::to_vec(&sealed).map_err(StoreError::unexpected)?;
        let binding = binding(self.form.session, self.form.number);
        let sealed = self.sealer.seal(Purpose::Flash, &binding, &plain);
        self.form.take(accounts, Some(sealed)).await
    }
}

/// Takes what was kept in a session under the number of a form; nothing when there is none, or it was taken, or its key is
/// gone.
pub async fn take(
    accounts: &dyn AccountStore,
    sealer: &dyn Sealer,
    (session, number): (SecretHash, Uuid),
) -> Result<Option<Shown>, StoreError> {
    let kept = accounts.take_flash(session, number).await?;
    Ok(kept.and_then(|kept| opened(sealer, &binding(session, number), &kept)))
}

fn opened(sealer: &dyn Sealer, binding: &[u8], kept: &[u8]) -> Option<Shown> {
    let plain = sealer.open(Purpose::Flash, binding, kept).ok()?;
    Some(match serde_json::from_slice(&plain).ok()? {
        Sealed::Registered(id, secret) => Shown::Registered(id.into(), secret),
        Sealed::Rotated(id, secret) => Shown::Rotated(id.into(), secret),
        Sealed::Token(id, token) => Shown::Token(id.into(), token),
    })
}

fn binding(session: SecretHash, number: Uuid) -> Vec<u8> {
    [session.bytes().as_slice(), number.as_bytes()].concat()
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

    use super::*;
    use crate::MockTransaction;

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
        let under = |session: &str, number: u128| (SecretHash::of(session), Uuid::from_u128(number));
        let id = Uuid::from_u128(9);
        for shown in [
            Shown::Registered(id.into(), Some("pss_x".to_owned())),
            Shown::Registered(id.into(), None),
            Shown::Rotated(id.into(), "pss_y".to_owned()),
            Shown::Token(id.into(), "ps_pt_z".to_owned()),
        ] {
            let kept = std::sync::Arc::new(std::sync::Mutex::new(None));
            let (mut store, there) = (MockTransaction::new(), kept.clone());
            store.expect_keep_flash().returning(move |_, _, sealed| {
                if sealed.is_some() {
                    *there.lock().unwrap() = sealed;
                }
                Ok(true)
            });
            store
                .expect_take_flash()
                .returning(move |_, _| Ok(kept.lock().unwrap().clone()));
            let (session, number) = under("mine", 1);
            let form = SentForm {
                session,
                number,
                mark: Uuid::from_u128(2),
            };
            let sent = Sent {
                form,
                sealer: &sealer,
            };
            sent.keep::<NumberUsed>(&store, &shown).await.unwrap();
            let taken = async |whose| take(&store, &sealer, whose).await.unwrap();
            assert_eq!(taken(under("mine", 1)).await, Some(shown.clone()));
            assert_eq!(taken(under("other", 1)).await, None);
            assert_eq!(taken(under("mine", 2)).await, None);
            assert!(!format!("{shown:?}").contains("pss_"), "{shown:?}");
        }
    }
}
