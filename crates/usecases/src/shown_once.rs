//! Panel forms that take effect once, and their results that are shown once.
//!
//! Each form carries a one-time number, which is claimed before anything else happens. Submitting the same
//! form again, by a double click or a reload, has no further effect. A form with different content under a
//! used number, as the browser's back button can produce, must not get the first form's result.
//!
//! A new secret is sealed, stored under the session and the number, and taken by the page that the browser is
//! redirected to.

use accounts::AccountStore;
use kernel::{Randomness, SealPurpose, Sealer, StoreError};
use oauth::SecretHash;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{ActingSeller, Failure};

/// A submitted form.
#[derive(Debug, Clone, Copy)]
pub struct SentForm {
    pub by: ActingSeller,
    /// The session that submitted it.
    pub session: SecretHash,
    /// Its one-time number.
    pub number: Uuid,
    /// A digest of the number, the form's content and its target: equal only for the same form.
    pub mark: Uuid,
}

/// The number of the form was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberUsed {
    /// By the same form: its effect has happened.
    #[error("the form was sent before")]
    BySame,
    /// By a form with different content: nothing is done.
    #[error("the form's number was used by another form")]
    ByOther,
}

impl SentForm {
    /// Claims the number, and stores the content to be shown once with it.
    ///
    /// One row records that the number was used, a second row by which form. A concurrent request with the
    /// same number waits at the first row for the other transaction's end, and then finds both rows or
    /// neither.
    pub(crate) async fn claim<R: From<NumberUsed>>(
        self,
        accounts: &dyn AccountStore,
        sealed: Option<Vec<u8>>,
    ) -> Result<(), Failure<R>> {
        let first = accounts.store_flash(self.session, self.number, sealed).await?;
        let unknown = accounts.store_flash(self.session, self.mark, None).await?;
        match (first, unknown) {
            (true, _) => Ok(()),
            (false, false) => Err(Failure::Refused(NumberUsed::BySame.into())),
            // The refusal rolls back the row that was just inserted.
            (false, true) => Err(Failure::Refused(NumberUsed::ByOther.into())),
        }
    }
}

/// The content to be shown once: the id of an application or a token, and its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShownSecret {
    /// A registered application with its secret; none for a public one.
    Registered(Uuid, Option<String>),
    /// An application with its new secret.
    Rotated(Uuid, String),
    /// A new personal token.
    Token(Uuid, String),
}

impl std::fmt::Debug for ShownSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShownSecret")
    }
}

impl SentForm {
    /// Claims the form's number and stores the content to be shown, sealed. After a refusal, nothing else may
    /// be done.
    pub(crate) async fn store<R: From<NumberUsed>>(
        self,
        accounts: &dyn AccountStore,
        sealer: &dyn Sealer,
        shown: &ShownSecret,
    ) -> Result<(), Failure<R>> {
        let plain = serde_json::to_vec(shown).map_err(StoreError::unexpected)?;
        let content = sealer.seal(SealPurpose::Flash, &binding(self.session, self.number), &plain);
        self.claim(accounts, Some(content)).await
    }
}

/// Takes the content stored for a form of this session. None if there is none, if it was already taken, or if
/// its sealing key is gone.
pub async fn take(
    accounts: &dyn AccountStore,
    sealer: &dyn Sealer,
    session: SecretHash,
    number: Uuid,
) -> Result<Option<ShownSecret>, StoreError> {
    let flash = accounts.take_flash(session, number).await?;
    Ok(flash.and_then(|flash| open(sealer, &binding(session, number), &flash)))
}

fn open(sealer: &dyn Sealer, binding: &[u8], flash: &[u8]) -> Option<ShownSecret> {
    let plain = sealer.open(SealPurpose::Flash, binding, flash).ok()?;
    serde_json::from_slice(&plain).ok()
}

fn binding(session: SecretHash, number: Uuid) -> Vec<u8> {
    [session.bytes().as_slice(), number.as_bytes()].concat()
}

/// Random bytes drawn in advance, so that the content to be shown can be stored before the action that
/// creates it.
#[derive(Clone, Copy)]
pub(crate) struct PredrawnRandomness {
    pub(crate) id: Uuid,
    pub(crate) secret: [u8; 32],
}

impl PredrawnRandomness {
    pub(crate) fn from(randomness: &dyn Randomness) -> Self {
        Self {
            id: randomness.uuid(),
            secret: randomness.secret(),
        }
    }
}

impl Randomness for PredrawnRandomness {
    fn secret(&self) -> [u8; 32] {
        self.secret
    }

    fn uuid(&self) -> Uuid {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use kernel::{MockSealer, SealError};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{Recorded, refusal, sent_form};

    #[tokio::test]
    async fn a_number_is_claimed_once_and_the_same_form_is_recognized() {
        let rows = Mutex::new(HashSet::new());
        let mut panel = MockTransaction::new();
        panel.expect_store_flash().returning(move |session, key, _| {
            Ok(rows.lock().unwrap().insert((session.bytes().to_vec(), key)))
        });
        let take = async |session: &str, number: u128, mark: u128| {
            let form = SentForm {
                session: SecretHash::of(session),
                number: Uuid::from_u128(number),
                mark: Uuid::from_u128(mark),
                ..sent_form()
            };
            form.claim::<NumberUsed>(&panel, None).await
        };
        take("mine", 1, 10).await.unwrap();
        assert_eq!(refusal(take("mine", 1, 10).await), NumberUsed::BySame);
        assert_eq!(refusal(take("mine", 1, 11).await), NumberUsed::ByOther);
        take("mine", 2, 20).await.unwrap();
        // Another session's number is another.
        take("other", 1, 10).await.unwrap();
    }

    /// A fake sealer that prepends the binding to the plain text.
    fn sealer() -> MockSealer {
        let mut sealer = MockSealer::new();
        sealer
            .expect_seal()
            .withf(|purpose, _, _| *purpose == SealPurpose::Flash)
            .returning(|_, bound, plain| [bound, plain].concat());
        sealer
            .expect_open()
            .returning(|_, bound, sealed| Ok(sealed.strip_prefix(bound).ok_or(SealError)?.to_vec()));
        sealer
    }

    #[tokio::test]
    async fn a_stored_secret_opens_for_its_session_and_form_alone() {
        let sealer = sealer();
        let id = Uuid::from_u128(9);
        for shown in [
            ShownSecret::Registered(id, Some("pss_x".to_owned())),
            ShownSecret::Registered(id, None),
            ShownSecret::Rotated(id, "pss_y".to_owned()),
            ShownSecret::Token(id, "ps_pt_z".to_owned()),
        ] {
            let (mut store, stored) = (MockTransaction::new(), Recorded::default());
            let record = stored.clone();
            store.expect_store_flash().returning(move |_, _, sealed| {
                record.add(sealed)?;
                Ok(true)
            });
            store
                .expect_take_flash()
                .returning(move |_, _| Ok(stored.all().into_iter().flatten().next()));
            let form = sent_form();
            form.store::<NumberUsed>(&store, &sealer, &shown).await.unwrap();
            let taken = async |session, number| take(&store, &sealer, session, number).await.unwrap();
            assert_eq!(taken(form.session, form.number).await, Some(shown.clone()));
            assert_eq!(taken(SecretHash::of("other"), form.number).await, None);
            assert_eq!(taken(form.session, Uuid::from_u128(2)).await, None);
            assert!(!format!("{shown:?}").contains("pss_"), "{shown:?}");
        }
    }
}
