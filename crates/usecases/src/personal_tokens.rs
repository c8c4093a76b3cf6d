//! Personal tokens: a seller creates and revokes them, in the panel or through the marketplace.

use accounts::{AccountStore, Action, MAX_PERSONAL_TOKENS, PersonalTokenRequest, Rule};
use chrono::{DateTime, Utc};
use kernel::{BrokenRules, Randomness, Sealer, SellerId, StoreError};
use oauth::{ApplicationStore, BearerToken, FamilyId, FamilyKind, Grant, GrantStore, NewToken, TokenKind};

use crate::sellers::{NotOpen, lock_open};
use crate::shown_once::{NumberUsed, PredrawnRandomness, SentForm, ShownSecret};
use crate::{ActingSeller, Announcement, Failure, failure::refuse};

/// Why a personal token is not created or revoked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Account(#[from] NotOpen),
    #[error("{0}")]
    Invalid(BrokenRules<Rule>),
    #[error("the seller already has {MAX_PERSONAL_TOKENS} live personal tokens: revoke one first")]
    TooMany,
    #[error("no such token")]
    NoSuchToken,
}

/// Creates a personal token. Locks the account's row, so that the limit of live tokens holds under
/// concurrency.
pub async fn issue_personal_token(
    grants: &dyn GrantStore,
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    request: PersonalTokenRequest,
    now: DateTime<Utc>,
) -> Result<BearerToken, Failure<Refusal>> {
    lock_open::<Refusal>(accounts, seller).await?;
    let valid = request
        .check(now)
        .map_err(|violations| Failure::Refused(Refusal::Invalid(violations)))?;
    if accounts.count_personal_tokens(seller, now).await? >= MAX_PERSONAL_TOKENS {
        return refuse(Refusal::TooMany);
    }
    let application = applications.built_in_application(seller).await?;
    let application =
        application.ok_or_else(|| StoreError::corrupt("sellers", seller, "has no built-in application"))?;
    let family = FamilyId::from(randomness.uuid());
    let token = BearerToken::from_random(TokenKind::Personal, family, &randomness.secret());
    let new = NewToken {
        family,
        kind: FamilyKind::Personal,
        grant: Grant {
            seller,
            client_id: application.client_id,
            scopes: valid.scopes,
        },
        hash: token.key().hash,
        expires_at: valid.expires_at,
    };
    grants.issue_token(new).await?;
    accounts.add_personal_token(seller, family, &valid.name).await?;
    Ok(token)
}

/// Revokes a personal token; it is rejected from the commit on. Refused if it was revoked before.
pub async fn revoke_personal_token(
    accounts: &dyn AccountStore,
    seller: SellerId,
    id: FamilyId,
) -> Result<(), Failure<Refusal>> {
    if accounts.revoke_personal_token(seller, id).await? {
        Ok(())
    } else {
        refuse(Refusal::NoSuchToken)
    }
}

/// Why a token is not created in the panel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PanelRefusal {
    #[error(transparent)]
    Token(#[from] Refusal),
    #[error(transparent)]
    Form(#[from] NumberUsed),
}

/// Creates a token, which is stored to be shown once.
#[expect(clippy::too_many_arguments, reason = "three stores")]
pub async fn issue_in_panel(
    grants: &dyn GrantStore,
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    form: SentForm,
    sealer: &dyn Sealer,
    request: PersonalTokenRequest,
    now: DateTime<Utc>,
) -> Result<(), Failure<PanelRefusal>> {
    let predrawn = PredrawnRandomness::from(randomness);
    let id = FamilyId::from(predrawn.id);
    let token = BearerToken::from_random(TokenKind::Personal, id, &predrawn.secret);
    let shown = ShownSecret::Token(id.uuid(), token.reveal().to_owned());
    form.store::<PanelRefusal>(accounts, sealer, &shown).await?;
    let by = form.by;
    issue_personal_token(grants, applications, accounts, &predrawn, by.seller, request, now)
        .await
        .map_err(Failure::refused_as)?;
    by.log(accounts, Action::PersonalTokenCreated, id).await?;
    Ok(())
}

pub async fn revoke_in_panel(
    accounts: &dyn AccountStore,
    by: ActingSeller,
    id: FamilyId,
) -> Result<(), Failure<Refusal>> {
    revoke_personal_token(accounts, by.seller, id).await?;
    by.log(accounts, Action::PersonalTokenRevoked, id).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use oauth::{Application, SecretHash};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{
        Recorded, by, chance, knowing_sellers, logging, now, recording_sealer, refusal, sent_form,
    };

    /// Records the stored token hashes.
    fn store(mut tx: MockTransaction, alive: usize, closed: bool) -> (MockTransaction, Recorded<SecretHash>) {
        tx = knowing_sellers(tx, closed);
        tx.expect_built_in_application().returning(|owner| {
            let id = Uuid::from_u128(8).into();
            Ok(Some(Application::built_in(id, owner, now()).after))
        });
        tx.expect_count_personal_tokens().returning(move |_, _| Ok(alive));
        let stored = Recorded::default();
        let record = stored.clone();
        tx.expect_issue_token()
            .returning(move |token| record.add(token.hash));
        tx.expect_add_personal_token().returning(|_, _, _| Ok(()));
        (tx, stored)
    }

    fn request() -> PersonalTokenRequest {
        PersonalTokenRequest {
            name: "script".to_owned(),
            scopes: vec!["offers:read".to_owned()],
            expires_at: None,
        }
    }

    #[tokio::test]
    async fn the_twentieth_token_is_the_last_and_a_closed_account_gets_none() {
        for (alive, closed, expected) in [
            (MAX_PERSONAL_TOKENS - 1, false, None),
            (MAX_PERSONAL_TOKENS, false, Some(Refusal::TooMany)),
            (0, true, Some(Refusal::Account(NotOpen::SellerClosed))),
        ] {
            let (tx, stored) = store(MockTransaction::new(), alive, closed);
            let (chance, seller) = (chance(), by().seller);
            let issued = issue_personal_token(&tx, &tx, &tx, &chance, seller, request(), now()).await;
            if let Some(expected) = expected {
                assert_eq!(refusal(issued), expected);
                assert_eq!(stored.all(), []);
            } else {
                let issued = issued.unwrap();
                assert!(issued.reveal().starts_with("ps_pt_"));
                assert_eq!(issued.key().family, Uuid::from_u128(1).into());
                assert_eq!(stored.all(), [issued.key().hash]);
            }
        }
    }

    #[tokio::test]
    async fn a_form_creates_one_token_which_the_panel_will_show() {
        for first in [true, false] {
            let tx = logging(usize::from(first), Action::PersonalTokenCreated);
            let (mut tx, stored) = store(tx, 0, false);
            tx.expect_store_flash()
                .times(2)
                .returning(move |_, _, _| Ok(first));
            let (sealer, texts) = recording_sealer();
            let (chance, form) = (chance(), sent_form());
            let done = issue_in_panel(&tx, &tx, &tx, &chance, form, &sealer, request(), now()).await;
            if first {
                done.unwrap();
                let shown = texts.all().concat();
                let secret = shown.split('"').find(|part| part.starts_with("ps_pt_")).unwrap();
                assert_eq!(stored.all(), [SecretHash::of(secret)]);
            } else {
                assert_eq!(refusal(done), PanelRefusal::Form(NumberUsed::BySame));
                assert_eq!(stored.all(), []);
            }
        }
    }
}
