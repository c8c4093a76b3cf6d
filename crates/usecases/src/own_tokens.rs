//! A seller makes and revokes personal tokens in the panel.

use accounts::{AccountStore, Action, PersonalTokenRequest};
use chrono::{DateTime, Utc};
use kernel::{Randomness, Violations};
use oauth::{ApplicationStore, BearerToken, FamilyId, GrantStore, TokenKind};

use crate::personal_tokens::{self, issue_personal_token, revoke_personal_token};
use crate::shown_once::NumberUsed;
use crate::shown_once::{Drawn, Sent, Shown};
use crate::{ActingSeller, Failure};

/// Why a token is not made or revoked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Fields that break a rule.
    #[error("{0}")]
    Invalid(Violations),
    /// As many are alive as may be.
    #[error("the seller has as many personal tokens as may be alive")]
    TooMany,
    /// The account is closed.
    #[error("the seller's account is closed")]
    SellerClosed,
    /// The seller has no such token.
    #[error("there is no such token")]
    NoSuchToken,
    /// The form's number was used before.
    #[error(transparent)]
    Form(#[from] NumberUsed),
}

impl From<personal_tokens::Refusal> for Refusal {
    fn from(refusal: personal_tokens::Refusal) -> Self {
        use personal_tokens::Refusal::{Invalid, NoSuchSeller, NoSuchToken, SellerClosed, TooMany};
        match refusal {
            Invalid(violations) => Self::Invalid(violations),
            TooMany => Self::TooMany,
            NoSuchSeller | SellerClosed => Self::SellerClosed,
            NoSuchToken => Self::NoSuchToken,
        }
    }
}

/// Makes a token, which waits to be shown once.
pub async fn issue(
    (grants, applications, accounts): (&dyn GrantStore, &dyn ApplicationStore, &dyn AccountStore),
    randomness: &dyn Randomness,
    (by, sent): (ActingSeller, Sent<'_>),
    request: PersonalTokenRequest,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    let drawn = Drawn::from(randomness);
    let id = FamilyId::from(drawn.id);
    let token = BearerToken::from_random(TokenKind::Personal, id, &drawn.secret);
    let shown = Shown::Token(id, token.reveal().to_owned());
    sent.keep::<Refusal>(accounts, &shown).await?;
    issue_personal_token((grants, applications, accounts), &drawn, by.seller, request, now)
        .await
        .map_err(Failure::refused_as)?;
    by.note(accounts, Action::PersonalTokenMade, id).await?;
    Ok(())
}

/// Revokes a token.
pub async fn revoke(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    id: FamilyId,
) -> Result<(), Failure<Refusal>> {
    revoke_personal_token(accounts, by.seller, id)
        .await
        .map_err(Failure::refused_as)?;
    by.note(accounts, Action::PersonalTokenRevoked, id).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use oauth::{Application, SecretHash};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{
        Recorded, by, chance, knowing_sellers, now, recording_sealer, refusal, sent_form,
    };

    /// What was stored as the token's hash, and what was sealed to be shown.
    async fn issued(first: bool) -> (Result<(), Failure<Refusal>>, Vec<SecretHash>, String) {
        let mut tx = knowing_sellers(MockTransaction::new(), false);
        tx.expect_built_in_application().returning(|owner| {
            let id = Uuid::from_u128(8).into();
            Ok(Some(Application::built_in(id, owner, now()).after))
        });
        tx.expect_count_personal_tokens().returning(|_, _| Ok(0));
        let stored = Recorded::default();
        let record = stored.clone();
        tx.expect_issue_token()
            .returning(move |token| record.add(token.hash));
        tx.expect_add_personal_token().returning(|_, _, _| Ok(()));
        tx.expect_keep_flash()
            .times(2)
            .returning(move |_, _, _| Ok(first));
        tx.expect_note()
            .times(usize::from(first))
            .returning(|_, _, _, _| Ok(()));
        let (sealer, texts) = recording_sealer();
        let sent = Sent {
            form: sent_form(),
            sealer: &sealer,
        };
        let request = PersonalTokenRequest {
            name: "script".to_owned(),
            scopes: vec!["offers:read".to_owned()],
            expires_at: None,
        };
        let done = issue((&tx, &tx, &tx), &chance(), (by(), sent), request, now()).await;
        (done, stored.all(), texts.all().concat())
    }

    #[tokio::test]
    async fn what_will_be_shown_is_the_token_that_is_stored() {
        let (done, stored, sealed) = issued(true).await;
        done.unwrap();
        let token = sealed.split('"').find(|part| part.starts_with("ps_pt_")).unwrap();
        assert_eq!(stored, [SecretHash::of(token)]);
    }

    #[tokio::test]
    async fn a_form_sent_twice_makes_one_token() {
        let (done, stored, _) = issued(false).await;
        assert_eq!(refusal(done), Refusal::Form(NumberUsed::BySame));
        assert_eq!(stored, []);
    }
}
