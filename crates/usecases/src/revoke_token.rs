//! A client gives a token back (RFC 7009).

use kernel::StoreError;
use oauth::{BearerToken, ClientId, Credential, CredentialKind, Family, GrantStore, TokenKey, TokenKind};

/// A token that can be given back, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocable {
    /// Its whole family ends with it.
    Refresh(TokenKey),
    /// It ends alone.
    Access(TokenKey),
}

impl Revocable {
    /// Reads what a client presents; nothing where there is nothing to end. A token says itself what it is, so that no hint
    /// is needed (RFC 7009 §2.1).
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(token) = Credential::parse(CredentialKind::RefreshToken, text) {
            return Some(Self::Refresh(token.key()));
        }
        let token = BearerToken::parse(text).filter(|token| token.kind() == TokenKind::Access)?;
        Some(Self::Access(token.key()))
    }
}

/// Ends a token of the client (D85). One that is another client's, or nobody's, is left alone, and that is no failure: the
/// client wanted it to be worth nothing to itself, and so it is.
pub async fn revoke_token(
    grants: &dyn GrantStore,
    token: Revocable,
    client_id: ClientId,
) -> Result<(), StoreError> {
    let own = |family: &Family| family.client_id == client_id;
    match token {
        Revocable::Refresh(key) => match grants.lock_refresh_token(key).await? {
            Some((family, Some(_))) if own(&family) => grants.revoke_family(family.id).await,
            _ => Ok(()),
        },
        Revocable::Access(key) => match grants.lock_family(key.family).await? {
            Some(family) if own(&family) => grants.revoke_access_token(key).await.map(drop),
            _ => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use oauth::{RefreshToken, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{family, now};

    fn refresh() -> Credential {
        Credential::from_random(CredentialKind::RefreshToken, family().id, &[1; 32])
    }

    fn access(kind: TokenKind) -> BearerToken {
        BearerToken::from_random(kind, family().id, &[1; 32])
    }

    fn locked() -> MockTransaction {
        let mut grants = MockTransaction::new();
        grants
            .expect_lock_family()
            .once()
            .withf(|id| *id == family().id)
            .returning(|_| Ok(Some(family())));
        grants
    }

    async fn revoke(grants: MockTransaction, text: &str, client: ClientId) {
        let token = Revocable::parse(text).unwrap();
        revoke_token(&grants, token, client).await.unwrap();
    }

    fn token() -> RefreshToken {
        RefreshToken {
            scopes: ScopeSet::all(),
            expires_at: now(),
            used_at: None,
        }
    }

    /// The family, with or without the refresh token.
    fn keeping(token: Option<RefreshToken>) -> MockTransaction {
        let mut grants = MockTransaction::new();
        grants
            .expect_lock_refresh_token()
            .once()
            .withf(|key| *key == refresh().key())
            .returning(move |_| Ok(Some((family(), token))));
        grants
    }

    #[tokio::test]
    async fn a_refresh_token_ends_its_family_even_when_it_was_used() {
        let used = RefreshToken {
            used_at: Some(now()),
            ..token()
        };
        let mut grants = keeping(Some(used));
        grants
            .expect_revoke_family()
            .once()
            .withf(|id| *id == family().id)
            .returning(|_| Ok(()));
        revoke(grants, refresh().reveal(), family().client_id).await;
    }

    #[tokio::test]
    async fn an_access_token_ends_alone() {
        let mut grants = locked();
        grants
            .expect_revoke_access_token()
            .once()
            .withf(|key| *key == access(TokenKind::Access).key())
            .returning(|_| Ok(true));
        revoke(grants, access(TokenKind::Access).reveal(), family().client_id).await;
    }

    #[tokio::test]
    async fn what_is_not_the_clients_own_is_left_alone() {
        let other = ClientId::from(Uuid::from_u128(77));
        revoke(keeping(Some(token())), refresh().reveal(), other).await;
        revoke(locked(), access(TokenKind::Access).reveal(), other).await;
        let own = family().client_id;
        let mut unknown = MockTransaction::new();
        unknown.expect_lock_refresh_token().once().returning(|_| Ok(None));
        revoke(unknown, refresh().reveal(), own).await;
        let mut nobodys = MockTransaction::new();
        nobodys.expect_lock_family().once().returning(|_| Ok(None));
        revoke(nobodys, access(TokenKind::Access).reveal(), own).await;
        // The family is its own, but has no such token.
        revoke(keeping(None), refresh().reveal(), own).await;
    }

    #[test]
    fn nothing_else_is_a_token_that_a_client_could_give_back() {
        let code = Credential::from_random(CredentialKind::AuthorizationCode, family().id, &[1; 32]);
        for text in [
            "",
            "ps_at_x",
            "ps_rt_",
            code.reveal(),
            access(TokenKind::Personal).reveal(),
        ] {
            assert_eq!(Revocable::parse(text), None, "{text}");
        }
    }
}
