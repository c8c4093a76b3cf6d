//! An operator revokes tokens: one that was found somewhere, or all of an application or a seller.

use oauth::{
    Action, BearerToken, Credential, CredentialKind, FamiliesOf, Family, FamilyId, GrantStore, PanelStore,
    TokenKey, TokenKind,
};

use crate::{ActingOperator, Failure, failure::refuse};

/// A token that somebody found, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It ends alone.
    Access(TokenKey),
    /// A personal token.
    Personal(TokenKey),
    /// Its whole family ends with it.
    Refresh(TokenKey),
}

impl Found {
    /// Reads a token; nothing where it cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(token) = Credential::parse(CredentialKind::RefreshToken, text) {
            return Some(Self::Refresh(token.key()));
        }
        let token = BearerToken::parse(text)?;
        Some(match token.kind() {
            TokenKind::Access => Self::Access(token.key()),
            TokenKind::Personal => Self::Personal(token.key()),
        })
    }
}

/// Why nothing is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such token; one that expired long ago has been cleared.
    #[error("there is no such token")]
    NoSuchToken,
}

/// Revokes a token, from the commit on, and returns its family's id. Revoking it again is harmless, and not noted.
pub async fn revoke_found(
    (grants, panel): (&dyn GrantStore, &dyn PanelStore),
    by: ActingOperator,
    token: Found,
) -> Result<FamilyId, Failure<Refusal>> {
    let family = match token {
        Found::Refresh(key) => {
            let Some((family, Some(_))) = grants.lock_refresh_token(key).await? else {
                return refuse(Refusal::NoSuchToken);
            };
            family
        }
        Found::Access(key) | Found::Personal(key) => holding(grants, key).await?,
    };
    let lived = !family.standing.revoked;
    let ended = match token {
        Found::Access(key) => grants.revoke_access_token(key).await? && lived,
        Found::Personal(_) | Found::Refresh(_) => {
            grants.revoke_family(family.id).await?;
            lived
        }
    };
    if ended {
        by.note(panel, Action::TokenRevoked, family.id).await?;
    }
    Ok(family.id)
}

/// The family that holds a token, locked.
async fn holding(grants: &dyn GrantStore, key: TokenKey) -> Result<Family, Failure<Refusal>> {
    let family = grants.lock_family(key.family).await?;
    match family {
        Some(family) if grants.has_access_token(key).await? => Ok(family),
        _ => refuse(Refusal::NoSuchToken),
    }
}

/// Revokes every token of an application or a seller that there is at this moment, and returns how many families ended.
pub async fn revoke_all(
    (grants, panel): (&dyn GrantStore, &dyn PanelStore),
    by: ActingOperator,
    of: FamiliesOf,
) -> Result<usize, Failure<Refusal>> {
    let ended = grants.revoke_families(of).await?;
    if ended > 0 {
        by.note(panel, Action::TokensRevoked, of).await?;
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use oauth::{MockGrantStore, MockPanelStore, RefreshToken, ScopeSet};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{family, now};

    const BY: ActingOperator = ActingOperator::CommandLine;

    fn bearer(kind: TokenKind) -> Found {
        Found::parse(BearerToken::from_random(kind, family().id, &[1; 32]).reveal()).unwrap()
    }

    fn refresh() -> Found {
        let token = Credential::from_random(CredentialKind::RefreshToken, family().id, &[1; 32]);
        Found::parse(token.reveal()).unwrap()
    }

    /// A store that holds the token, or its family alone.
    fn store(held: bool) -> MockGrantStore {
        keeping(family(), held)
    }

    fn keeping(family: Family, held: bool) -> MockGrantStore {
        let mut grants = MockGrantStore::new();
        grants.expect_lock_family().returning(move |_| Ok(Some(family)));
        grants.expect_has_access_token().returning(move |_| Ok(held));
        grants.expect_lock_refresh_token().returning(move |_| {
            let token = RefreshToken {
                scopes: ScopeSet::all(),
                expires_at: now(),
                used_at: None,
            };
            Ok(Some((family, held.then_some(token))))
        });
        grants
    }

    fn noting(times: usize, noted: Action) -> MockPanelStore {
        let mut panel = MockPanelStore::new();
        panel
            .expect_note()
            .times(times)
            .withf(move |_, _, action, _| *action == noted)
            .returning(|_, _, _, _| Ok(()));
        panel
    }

    #[tokio::test]
    async fn an_access_token_ends_alone_and_others_with_their_families() {
        let mut grants = store(true);
        grants
            .expect_revoke_access_token()
            .once()
            .withf(|key| key.family == family().id)
            .returning(|_| Ok(true));
        grants
            .expect_revoke_family()
            .times(2)
            .withf(|id| *id == family().id)
            .returning(|_| Ok(()));
        let panel = noting(3, Action::TokenRevoked);
        for token in [bearer(TokenKind::Access), bearer(TokenKind::Personal), refresh()] {
            let ended = revoke_found((&grants, &panel), BY, token).await.unwrap();
            assert_eq!(ended, family().id);
        }
    }

    #[tokio::test]
    async fn what_was_revoked_before_is_not_noted_again() {
        let mut dead = family();
        dead.standing.revoked = true;
        for (of, lived) in [(family(), false), (dead, true), (dead, false)] {
            let mut grants = keeping(of, true);
            grants
                .expect_revoke_access_token()
                .once()
                .returning(move |_| Ok(lived));
            let panel = noting(0, Action::TokenRevoked);
            let told = revoke_found((&grants, &panel), BY, bearer(TokenKind::Access)).await;
            assert_eq!(told.unwrap(), family().id);
        }
        for token in [bearer(TokenKind::Personal), refresh()] {
            let mut grants = keeping(dead, true);
            grants.expect_revoke_family().once().returning(|_| Ok(()));
            let panel = noting(0, Action::TokenRevoked);
            let told = revoke_found((&grants, &panel), BY, token).await;
            assert_eq!(told.unwrap(), family().id);
        }
    }

    #[tokio::test]
    async fn what_there_is_not_is_told_and_not_noted() {
        let (grants, panel) = (store(false), MockPanelStore::new());
        for token in [bearer(TokenKind::Access), bearer(TokenKind::Personal), refresh()] {
            let refused = revoke_found((&grants, &panel), BY, token).await;
            assert!(matches!(refused, Err(Failure::Refused(Refusal::NoSuchToken))));
        }
        let mut nobodys = MockGrantStore::new();
        nobodys.expect_lock_family().returning(|_| Ok(None));
        let refused = revoke_found((&nobodys, &panel), BY, bearer(TokenKind::Access)).await;
        assert!(matches!(refused, Err(Failure::Refused(Refusal::NoSuchToken))));
    }

    #[tokio::test]
    async fn only_what_ends_something_is_noted() {
        let seller = FamiliesOf::Seller(Uuid::from_u128(1).into());
        for (ended, noted) in [(3, 1), (0, 0)] {
            let mut grants = MockGrantStore::new();
            grants
                .expect_revoke_families()
                .once()
                .withf(move |of| *of == seller)
                .returning(move |_| Ok(ended));
            let panel = noting(noted, Action::TokensRevoked);
            assert_eq!(revoke_all((&grants, &panel), BY, seller).await.unwrap(), ended);
        }
    }

    #[test]
    fn what_is_no_token_is_not_read() {
        let code = Credential::from_random(CredentialKind::AuthorizationCode, family().id, &[1; 32]);
        for text in ["", "ps_at_x", "ps_op_x", code.reveal()] {
            assert_eq!(Found::parse(text), None, "{text}");
        }
    }
}
