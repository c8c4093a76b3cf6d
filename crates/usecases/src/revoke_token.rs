//! A client gives a token back (RFC 7009).

use kernel::StoreError;
use oauth::{BearerToken, ClientId, Credential, CredentialKind, GrantStore, TokenKey, TokenKind};

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
    let (Revocable::Refresh(key) | Revocable::Access(key)) = token;
    let family = grants.lock_family(key.family).await?;
    if family.is_none_or(|family| family.client_id != client_id) {
        return Ok(());
    }
    match token {
        Revocable::Refresh(key) if grants.refresh_token(key).await?.is_some() => {
            grants.revoke_family(key.family).await
        }
        Revocable::Refresh(_) => Ok(()),
        Revocable::Access(key) => grants.revoke_access_token(key).await,
    }
}

#[cfg(test)]
mod tests {
    use oauth::{MockGrantStore, RefreshToken, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{family, now};

    fn refresh() -> Credential {
        Credential::from_random(CredentialKind::RefreshToken, family().id, &[1; 32])
    }

    fn access(kind: TokenKind) -> BearerToken {
        BearerToken::from_random(kind, family().id, &[1; 32])
    }

    fn locked() -> MockGrantStore {
        let mut grants = MockGrantStore::new();
        grants
            .expect_lock_family()
            .once()
            .withf(|id| *id == family().id)
            .returning(|_| Ok(Some(family())));
        grants
    }

    async fn revoke(grants: MockGrantStore, text: &str, client: ClientId) {
        let token = Revocable::parse(text).unwrap();
        revoke_token(&grants, token, client).await.unwrap();
    }

    #[tokio::test]
    async fn a_refresh_token_ends_its_family_even_when_it_was_used() {
        let used = RefreshToken {
            scopes: ScopeSet::all(),
            expires_at: now(),
            used_at: Some(now()),
        };
        let mut grants = locked();
        grants
            .expect_refresh_token()
            .once()
            .withf(|key| *key == refresh().key())
            .returning(move |_| Ok(Some(used)));
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
            .returning(|_| Ok(()));
        revoke(grants, access(TokenKind::Access).reveal(), family().client_id).await;
    }

    #[tokio::test]
    async fn what_is_not_the_clients_own_is_left_alone() {
        let other = ClientId::from(Uuid::from_u128(77));
        revoke(locked(), refresh().reveal(), other).await;
        revoke(locked(), access(TokenKind::Access).reveal(), other).await;
        let mut unknown = MockGrantStore::new();
        unknown.expect_lock_family().once().returning(|_| Ok(None));
        revoke(unknown, refresh().reveal(), family().client_id).await;
        let mut forged = locked();
        forged.expect_refresh_token().once().returning(|_| Ok(None));
        revoke(forged, refresh().reveal(), family().client_id).await;
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
