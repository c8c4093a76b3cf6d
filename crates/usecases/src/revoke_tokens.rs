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
