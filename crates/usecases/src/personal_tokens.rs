//! Personal tokens: a seller makes and revokes them, in the panel or through the marketplace.

use accounts::{AccountStore, PERSONAL_TOKENS_MAX, PersonalTokenRequest};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError, Violations};
use oauth::{
    ApplicationStore, BearerToken, FamilyId, FamilyKind, Grant, GrantStore, IssuedToken, NewToken, TokenKind,
};

use crate::{Failure, failure::refuse};

/// Why a personal token is not made or revoked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such account.
    #[error("there is no such seller")]
    NoSuchSeller,
    /// The account is closed.
    #[error("the seller's account is closed")]
    SellerClosed,
    /// Fields that break a rule.
    #[error("{0}")]
    Invalid(Violations),
    /// As many are alive as may be.
    #[error("the seller has {PERSONAL_TOKENS_MAX} personal tokens that are alive: revoke one first")]
    TooMany,
    /// The seller has no such token.
    #[error("there is no such token")]
    NoSuchToken,
}

/// A personal token that was made.
#[derive(Debug)]
pub struct Issued {
    /// Its id, to revoke it by.
    pub id: FamilyId,
    /// The token.
    pub token: IssuedToken,
}

/// Makes a personal token. The account's row is locked, so that the number of living tokens holds under concurrency.
pub async fn issue_personal_token(
    (grants, applications, accounts): (&dyn GrantStore, &dyn ApplicationStore, &dyn AccountStore),
    randomness: &dyn Randomness,
    seller: SellerId,
    request: PersonalTokenRequest,
    now: DateTime<Utc>,
) -> Result<Issued, Failure<Refusal>> {
    match accounts.lock_seller(seller).await? {
        None => return refuse(Refusal::NoSuchSeller),
        Some(account) if account.closed_at.is_some() => return refuse(Refusal::SellerClosed),
        Some(_) => {}
    }
    let rules = request
        .check(now)
        .map_err(|violations| Failure::Refused(Refusal::Invalid(violations)))?;
    if accounts.count_personal_tokens(seller, now).await? >= PERSONAL_TOKENS_MAX {
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
            scopes: rules.scopes,
        },
        hash: token.key().hash,
        expires_at: rules.expires_at,
    };
    grants.issue_token(new).await?;
    accounts.add_personal_token(seller, family, &rules.name).await?;
    Ok(Issued {
        id: family,
        token: IssuedToken {
            token,
            scopes: rules.scopes,
        },
    })
}

/// Revokes a personal token; it is rejected from the commit on. Revoking it again changes nothing.
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

#[cfg(test)]
mod tests {
    use oauth::Application;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, knowing_sellers, now, refusal};

    async fn issue(alive: usize, closed: bool) -> Result<Issued, Failure<Refusal>> {
        let mut tx = knowing_sellers(MockTransaction::new(), closed);
        tx.expect_built_in_application().returning(|owner| {
            let id = Uuid::from_u128(8).into();
            Ok(Some(Application::built_in(id, owner, now()).after))
        });
        tx.expect_count_personal_tokens().returning(move |_, _| Ok(alive));
        let times = usize::from(alive < PERSONAL_TOKENS_MAX && !closed);
        tx.expect_issue_token().times(times).returning(|_| Ok(()));
        tx.expect_add_personal_token()
            .times(times)
            .returning(|_, _, _| Ok(()));
        let request = PersonalTokenRequest {
            name: "script".to_owned(),
            scopes: vec!["offers:read".to_owned()],
            expires_at: None,
        };
        let seller = Uuid::from_u128(1).into();
        issue_personal_token((&tx, &tx, &tx), &chance(), seller, request, now()).await
    }

    #[tokio::test]
    async fn the_twentieth_is_made_and_the_next_and_one_of_a_closed_account_refused() {
        let issued = issue(PERSONAL_TOKENS_MAX - 1, false).await.unwrap();
        assert!(issued.token.token.reveal().starts_with("ps_pt_"));
        assert_eq!(issued.token.token.key().family, issued.id);
        assert_eq!(refusal(issue(PERSONAL_TOKENS_MAX, false).await), Refusal::TooMany);
        assert_eq!(refusal(issue(0, true).await), Refusal::SellerClosed);
    }
}
