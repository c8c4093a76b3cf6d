//! Token revocation: a client revokes its own token, an operator revokes a leaked one, or all tokens of an
//! application or a seller.

use accounts::{AccountStore, Action};
use kernel::StoreError;
use oauth::{
    BearerToken, ClientId, Credential, CredentialKind, FamiliesOf, Family, FamilyId, GrantStore, TokenKey,
    TokenKind,
};

use crate::failure::{present, refuse};
use crate::{Acting, ActingOperator, Failure};

/// A presented token by its type. Its prefix tells the type, so that no hint is needed (RFC 7009 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresentedToken {
    /// Revoked alone.
    Access(TokenKey),
    /// A personal token.
    Personal(TokenKey),
    /// Revoked with its whole family.
    Refresh(TokenKey),
}

impl PresentedToken {
    /// Parses a token; None if it has none of our formats.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(token) = Credential::parse(CredentialKind::RefreshToken, text) {
            return Some(Self::Refresh(token.key()));
        }
        let token = BearerToken::presented(text)?;
        Some(match token.kind() {
            TokenKind::Access => Self::Access(token.key()),
            TokenKind::Personal => Self::Personal(token.key()),
        })
    }

    pub const fn key(self) -> TokenKey {
        let (Self::Access(key) | Self::Personal(key) | Self::Refresh(key)) = self;
        key
    }
}

/// There is no such token. Tokens that expired long ago have been deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such token")]
pub struct NoSuchToken;

/// A client revokes its own token (RFC 7009, D85). A personal token, another client's token and an unknown
/// one are left unchanged, which is no error: the token is already useless to this client.
pub async fn revoke_own(
    grants: &dyn GrantStore,
    token: PresentedToken,
    client_id: ClientId,
) -> Result<(), StoreError> {
    let own = |family: &Family| family.client_id == client_id;
    match token {
        PresentedToken::Refresh(key) => match grants.lock_credential(key).await? {
            Some((family, _)) if own(&family) => grants.revoke_family(family.id).await,
            _ => Ok(()),
        },
        PresentedToken::Access(key) => match grants.lock_family(key.family).await? {
            Some(family) if own(&family) => grants.revoke_access_token(key).await.map(drop),
            _ => Ok(()),
        },
        PresentedToken::Personal(_) => Ok(()),
    }
}

/// Revokes a token, effective from the commit on, and returns its family's id. Revoking it again is harmless
/// and adds no audit entry.
pub async fn revoke_presented(
    grants: &dyn GrantStore,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    token: PresentedToken,
) -> Result<FamilyId, Failure<NoSuchToken>> {
    let family = match token {
        PresentedToken::Refresh(key) => present(grants.lock_credential(key).await?, NoSuchToken)?.0,
        PresentedToken::Access(key) | PresentedToken::Personal(key) => lock_family_of(grants, key).await?,
    };
    let lived = !family.status.revoked;
    let ended = match token {
        PresentedToken::Access(key) => grants.revoke_access_token(key).await? && lived,
        PresentedToken::Personal(_) | PresentedToken::Refresh(_) => {
            grants.revoke_family(family.id).await?;
            lived
        }
    };
    if ended {
        by.log(accounts, Action::TokenRevoked, family.id).await?;
    }
    Ok(family.id)
}

/// The family of a token, locked.
async fn lock_family_of(grants: &dyn GrantStore, key: TokenKey) -> Result<Family, Failure<NoSuchToken>> {
    let family = grants.lock_family(key.family).await?;
    match family {
        Some(family) if grants.access_token(key).await?.is_some() => Ok(family),
        _ => refuse(NoSuchToken),
    }
}

/// Revokes all current tokens of an application or a seller; of a seller also ends the sessions and one-time links.
pub async fn revoke_all(
    grants: &dyn GrantStore,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    of: FamiliesOf,
) -> Result<(), StoreError> {
    grants.revoke_families(of).await?;
    if let FamiliesOf::Seller(seller) = of {
        accounts.end_sessions(seller, None).await?;
    }
    by.log(accounts, Action::TokensRevoked, of).await
}

#[cfg(test)]
mod tests {
    use oauth::{AccessToken, RefreshToken, ScopeSet, StoredCredential};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, family, logging, now};

    fn bearer(kind: TokenKind) -> PresentedToken {
        PresentedToken::parse(BearerToken::from_random(kind, family().id, &[1; 32]).reveal()).unwrap()
    }

    fn refresh() -> PresentedToken {
        let token = Credential::from_random(CredentialKind::RefreshToken, family().id, &[1; 32]);
        PresentedToken::parse(token.reveal()).unwrap()
    }

    /// A transaction that finds the family, and the token where it holds one.
    fn finding(mut tx: MockTransaction, family: Family, held: bool) -> MockTransaction {
        tx.expect_lock_family().returning(move |_| Ok(Some(family)));
        let token = AccessToken {
            scopes: ScopeSet::all(),
            expires_at: None,
        };
        tx.expect_access_token()
            .returning(move |_| Ok(held.then_some(token)));
        tx.expect_lock_credential().returning(move |_| {
            let token = RefreshToken {
                scopes: ScopeSet::all(),
                expires_at: now(),
                used_at: None,
            };
            Ok(held.then_some((family, StoredCredential::RefreshToken(token))))
        });
        tx
    }

    #[tokio::test]
    async fn an_access_token_is_revoked_alone_and_others_with_their_families() {
        let mut dead = family();
        dead.status.revoked = true;
        let (access, personal) = (bearer(TokenKind::Access), bearer(TokenKind::Personal));
        // Only a token that was alive is logged: `lived` is about access tokens.
        for (token, of, lived, logged, families, tokens) in [
            (access, family(), true, 1, 0, 1),
            (personal, family(), true, 1, 1, 0),
            (refresh(), family(), true, 1, 1, 0),
            (access, family(), false, 0, 0, 1),
            (access, dead, true, 0, 0, 1),
            (access, dead, false, 0, 0, 1),
            (personal, dead, true, 0, 1, 0),
            (refresh(), dead, true, 0, 1, 0),
        ] {
            let mut tx = finding(logging(logged, Action::TokenRevoked), of, true);
            tx.expect_revoke_access_token()
                .times(tokens)
                .withf(|key| key.family == family().id)
                .returning(move |_| Ok(lived));
            tx.expect_revoke_family()
                .times(families)
                .withf(|id| *id == family().id)
                .returning(|_| Ok(()));
            let revoked = revoke_presented(&tx, &tx, OPERATOR, token).await.unwrap();
            assert_eq!(revoked, family().id);
        }
    }

    #[tokio::test]
    async fn a_client_revokes_its_own_tokens_alone() {
        let own = family().client_id;
        let other = ClientId::from(Uuid::from_u128(77));
        for (token, held, client, families, tokens) in [
            (refresh(), true, own, 1, 0),
            (refresh(), false, own, 0, 0),
            (refresh(), true, other, 0, 0),
            (bearer(TokenKind::Access), true, own, 0, 1),
            (bearer(TokenKind::Access), true, other, 0, 0),
            (bearer(TokenKind::Personal), true, own, 0, 0),
        ] {
            let mut tx = finding(MockTransaction::new(), family(), held);
            tx.expect_revoke_family()
                .times(families)
                .withf(|id| *id == family().id)
                .returning(|_| Ok(()));
            tx.expect_revoke_access_token()
                .times(tokens)
                .withf(move |key| PresentedToken::Access(*key) == token)
                .returning(|_| Ok(true));
            revoke_own(&tx, token, client).await.unwrap();
        }
    }
}
