//! Panel forms that take effect once, and their results that are shown once.
//!
//! Each form carries a one-time number, which is claimed before anything else happens. Submitting the same
//! form again, by a double click or a reload, has no further effect. A form with different content under a
//! used number, as the browser's back button can produce, must not get the first form's result.
//!
//! A new secret is sealed, stored under the session and the number, and taken by the page that the browser is
//! redirected to.

use accounts::AccountStore;
use kernel::{SealPurpose, Sealer, StoreError};
use oauth::SecretHash;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Failure, failure::ensure};

/// A submitted form.
#[derive(Debug, Clone, Copy)]
pub struct SentForm {
    /// The session that submitted it.
    pub session: SecretHash,
    /// Its one-time number.
    pub number: Uuid,
    /// A digest of the number, the form's content and its target: equal only for the same form.
    pub mark: Uuid,
}

impl SentForm {
    /// Runs the form's action and stores what it shows; does nothing if the same form was sent before.
    /// Refused with None if a form with different content has used the number.
    ///
    /// One row records that the number was used, with what is shown, a second row by which form. A concurrent
    /// request with the same number waits at the first row for the other transaction's end, and then finds both
    /// rows or neither.
    pub async fn once<R>(
        self,
        accounts: &dyn AccountStore,
        sealer: &dyn Sealer,
        action: impl Future<Output = Result<Option<ShownSecret>, Failure<R>>>,
    ) -> Result<(), Failure<Option<R>>> {
        let Self {
            session,
            number,
            mark,
        } = self;
        if !accounts.store_flash(session, number, None).await? {
            let is_other = accounts.store_flash(session, mark, None).await?;
            // The refusal rolls back the row that was just inserted.
            return ensure(!is_other, None);
        }
        let shown = action.await.map_err(Failure::refused_as::<Option<R>>)?;
        accounts.store_flash(session, mark, None).await?;
        if let Some(shown) = shown {
            let plain = serde_json::to_vec(&shown).map_err(StoreError::unexpected)?;
            let content = sealer.seal(SealPurpose::Flash, &binding(session, number), &plain);
            accounts.store_flash(session, number, Some(content)).await?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use kernel::{MockSealer, SealError};

    use super::*;

    #[test]
    fn a_stored_secret_opens_for_its_session_and_form_alone() {
        let (session, number) = (SecretHash::of("x"), Uuid::from_u128(4));
        let shown = ShownSecret::Rotated(Uuid::from_u128(9), "pss_y".to_owned());
        let plain = serde_json::to_vec(&shown).unwrap();
        let stored = [binding(session, number), plain].concat();
        let mut sealer = MockSealer::new();
        sealer
            .expect_open()
            .withf(|purpose, _, _| *purpose == SealPurpose::Flash)
            .returning(|_, bound, stored| Ok(stored.strip_prefix(bound).ok_or(SealError)?.to_vec()));
        let opened = |session, number| open(&sealer, &binding(session, number), &stored);
        assert_eq!(opened(session, number), Some(shown.clone()));
        assert_eq!(opened(SecretHash::of("other"), number), None);
        assert_eq!(opened(session, Uuid::from_u128(2)), None);
        assert!(!format!("{shown:?}").contains("pss_"), "{shown:?}");
    }
}
