//! Forms of the panel that act once: each carries a number of its own, which is taken before anything is done.
//!
//! The same form sent again, by a double click or a reload, has done what it does. One that says something else under a number
//! that was used, as it comes about by the browser's way back, must not be answered by what the first one did.

use accounts::AccountStore;
use oauth::SecretHash;
use uuid::Uuid;

use crate::Failure;

/// A form that was sent.
#[derive(Debug, Clone, Copy)]
pub struct SentForm {
    /// The session in which it was sent.
    pub session: SecretHash,
    /// Its one-time number.
    pub number: Uuid,
    /// Stands for the number together with all that the form says and what it was sent to: the same for the same form alone.
    pub mark: Uuid,
}

/// The number of a form was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberUsed {
    /// By the same form, which has done what it does.
    #[error("the form was sent before")]
    BySame,
    /// By one that said something else: nothing is done.
    #[error("the form's number was used by another one")]
    ByOther,
}

impl SentForm {
    /// Takes the number, and keeps with it what is to be shown once.
    ///
    /// The number's row says that it was used, a second one by which form. Whoever sends the number at the same moment waits
    /// at the first row for the other one's end, and so finds the second row, or neither.
    pub(crate) async fn take<R: From<NumberUsed>>(
        self,
        accounts: &dyn AccountStore,
        sealed: Option<Vec<u8>>,
    ) -> Result<(), Failure<R>> {
        let first = accounts.keep_flash(self.session, self.number, sealed).await?;
        let unknown = accounts.keep_flash(self.session, self.mark, None).await?;
        match (first, unknown) {
            (true, _) => Ok(()),
            (false, false) => Err(Failure::Refused(NumberUsed::BySame.into())),
            // The refusal undoes the row that was just made.
            (false, true) => Err(Failure::Refused(NumberUsed::ByOther.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use super::*;
    use crate::MockTransaction;

    #[tokio::test]
    async fn a_number_is_taken_once_and_the_same_form_is_known_again() {
        let rows = Mutex::new(HashSet::new());
        let mut panel = MockTransaction::new();
        panel.expect_keep_flash().returning(move |session, key, _| {
            Ok(rows.lock().unwrap().insert((session.bytes().to_vec(), key)))
        });
        let take = async |session: &str, number: u128, mark: u128| {
            let form = SentForm {
                session: SecretHash::of(session),
                number: Uuid::from_u128(number),
                mark: Uuid::from_u128(mark),
            };
            match form.take::<NumberUsed>(&panel, None).await {
                Ok(()) => Ok(()),
                Err(Failure::Refused(used)) => Err(used),
                Err(Failure::Store(error)) => panic!("{error}"),
            }
        };
        assert_eq!(take("mine", 1, 10).await, Ok(()));
        assert_eq!(take("mine", 1, 10).await, Err(NumberUsed::BySame));
        assert_eq!(take("mine", 1, 11).await, Err(NumberUsed::ByOther));
        assert_eq!(take("mine", 2, 20).await, Ok(()));
        assert_eq!(
            take("other", 1, 10).await,
            Ok(()),
            "another session's number is another"
        );
    }
}
