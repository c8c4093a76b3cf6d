//! A seller makes and revokes personal tokens in the panel.

use chrono::{DateTime, Utc};
use kernel::{Randomness, Violations};
use oauth::{Action, BearerToken, FamilyId, PanelStore, PersonalTokenRequest, TokenKind};

use crate::personal_tokens::{self, Stores, issue_personal_token, revoke_personal_token};
use crate::sent_form::NumberUsed;
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
    (stores, panel): (Stores<'_>, &dyn PanelStore),
    randomness: &dyn Randomness,
    (by, sent): (ActingSeller, Sent<'_>),
    request: PersonalTokenRequest,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    let drawn = Drawn::from(randomness);
    let id = FamilyId::from(drawn.id);
    let token = BearerToken::from_random(TokenKind::Personal, id, &drawn.secret);
    let shown = Shown::Token(id, token.reveal().to_owned());
    sent.keep::<Refusal>(panel, &shown).await?;
    issue_personal_token(stores, &drawn, by.seller, request, now)
        .await
        .map_err(Failure::refused_as)?;
    by.note(panel, Action::PersonalTokenMade, id).await?;
    Ok(())
}

/// Revokes a token.
pub async fn revoke(
    (stores, panel): (Stores<'_>, &dyn PanelStore),
    by: ActingSeller,
    id: FamilyId,
) -> Result<(), Failure<Refusal>> {
    revoke_personal_token(stores.tokens, by.seller, id)
        .await
        .map_err(Failure::refused_as)?;
    by.note(panel, Action::PersonalTokenRevoked, id).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kernel::MockSealer;
    use oauth::{
        Application, MockApplicationStore, MockPanelStore, MockSellerStore, MockTokenStore, SecretHash,
    };
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{chance, now, seller, sent_form};

    fn by() -> ActingSeller {
        ActingSeller {
            seller: Uuid::from_u128(1).into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// What the mock stored as the token's hash, and what was sealed to be shown.
    async fn issued(first: bool) -> (Result<(), Failure<Refusal>>, Option<SecretHash>, String) {
        let (mut sellers, mut applications) = (MockSellerStore::new(), MockApplicationStore::new());
        let (mut tokens, mut panel, mut sealer) =
            (MockTokenStore::new(), MockPanelStore::new(), MockSealer::new());
        sellers.expect_lock_seller().returning(|id| Ok(Some(seller(id))));
        applications.expect_built_in_application().returning(|owner| {
            let id = Uuid::from_u128(8).into();
            Ok(Some(Application::built_in(id, owner, now()).after))
        });
        tokens.expect_count_personal_tokens().returning(|_, _| Ok(0));
        let hash = Arc::new(Mutex::new(None));
        let plain_text = Arc::new(Mutex::new(String::new()));
        let (to, seen) = (hash.clone(), plain_text.clone());
        tokens.expect_issue_token().returning(move |token| {
            *to.lock().unwrap() = Some(token.hash);
            Ok(())
        });
        tokens.expect_add_personal_token().returning(|_, _, _| Ok(()));
        sealer.expect_seal().returning(move |_, _, plain| {
            *seen.lock().unwrap() = String::from_utf8(plain.to_vec()).unwrap();
            plain.to_vec()
        });
        panel
            .expect_keep_flash()
            .times(2)
            .returning(move |_, _, _| Ok(first));
        panel
            .expect_note()
            .times(usize::from(first))
            .returning(|_, _, _, _| Ok(()));
        let stores = Stores {
            sellers: &sellers,
            applications: &applications,
            tokens: &tokens,
        };
        let sent = Sent {
            form: sent_form(),
            sealer: &sealer,
        };
        let request = PersonalTokenRequest {
            name: "script".to_owned(),
            scopes: vec!["offers:read".to_owned()],
            expires_at: None,
        };
        let done = issue((stores, &panel), &chance(), (by(), sent), request, now()).await;
        let hash = *hash.lock().unwrap();
        let shown = plain_text.lock().unwrap().clone();
        (done, hash, shown)
    }

    #[tokio::test]
    async fn what_will_be_shown_is_the_token_that_is_stored() {
        let (done, stored, sealed) = issued(true).await;
        done.unwrap();
        let token = sealed.split('"').find(|part| part.starts_with("ps_pt_")).unwrap();
        assert_eq!(stored, Some(SecretHash::of(token)));
    }

    #[tokio::test]
    async fn a_form_sent_twice_makes_one_token() {
        let (done, stored, _) = issued(false).await;
        assert!(matches!(
            done,
            Err(Failure::Refused(Refusal::Form(NumberUsed::BySame)))
        ));
        assert_eq!(stored, None);
    }
}
