//! The marketplace makes links for its sellers: invitations that go out by mail, and links that sign in who is signed in
//! elsewhere.

use accounts::{AccountStore, Action, Link, LinkKind, Seller};
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId};

use crate::account_links::{link_url, make_link, send_link};
use crate::{ActingOperator, Failure, failure::refuse};

/// Why no link is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such account.
    #[error("there is no such seller")]
    NoSuchSeller,
    /// The account is closed.
    #[error("the seller's account is closed")]
    SellerClosed,
}

/// A link for the marketplace to send its seller to.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInLink {
    /// Its address.
    pub url: String,
    /// When it can no longer be used.
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignInLink")
    }
}

/// Makes a link that signs a seller in; the one before it is useless from then on.
pub async fn make_sign_in_link(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<SignInLink, Failure<Refusal>> {
    let seller = open(accounts, seller).await?;
    let (secret, link) = make_link(accounts, randomness, seller.id, LinkKind::SignIn, now).await?;
    by.note(accounts, Action::SignInLinkMade, seller.id).await?;
    Ok(SignInLink {
        url: link_url(public_url, LinkKind::SignIn, &secret),
        expires_at: link.expires_at,
    })
}

/// Sends an invitation again; the one before it is useless from then on.
pub async fn invite(
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<Link, Failure<Refusal>> {
    let seller = open(accounts, seller).await?;
    let of = (&seller, LinkKind::Invitation);
    let link = send_link(accounts, randomness, of, public_url, now).await?;
    by.note(accounts, Action::InvitationSent, seller.id).await?;
    Ok(link)
}

/// The account, locked, where it is open.
async fn open(accounts: &dyn AccountStore, id: SellerId) -> Result<Seller, Failure<Refusal>> {
    match accounts.lock_seller(id).await? {
        None => refuse(Refusal::NoSuchSeller),
        Some(seller) if seller.closed_at.is_some() => refuse(Refusal::SellerClosed),
        Some(seller) => Ok(seller),
    }
}

#[cfg(test)]
mod tests {
    use accounts::LinkSecret;
    use chrono::TimeDelta;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, by, chance, knowing_sellers, noting, now, refusal};

    fn of() -> (ActingOperator, SellerId) {
        (OPERATOR, by().seller)
    }

    /// Stores one link of this kind, and notes this.
    fn storing(kind: LinkKind, action: Action) -> MockTransaction {
        let mut tx = knowing_sellers(noting(1, action), false);
        let hash = LinkSecret::from_random(&[7; 32]).hash();
        tx.expect_add_link()
            .once()
            .withf(move |link| (link.hash, link.kind, link.seller) == (hash, kind, of().1))
            .returning(|_| Ok(()));
        tx
    }

    #[tokio::test]
    async fn a_sign_in_link_is_the_one_that_is_stored_and_lasts_a_minute() {
        let tx = storing(LinkKind::SignIn, Action::SignInLinkMade);
        let link = make_sign_in_link(&tx, &chance(), of(), "https://api.example", now())
            .await
            .unwrap();
        let secret = LinkSecret::from_random(&[7; 32]);
        let expected = format!("https://api.example/panel/sign-in/{}", secret.reveal());
        assert_eq!(link.url, expected);
        assert_eq!(link.expires_at, now() + TimeDelta::seconds(60));
        assert!(!format!("{link:?}").contains(secret.reveal()));
    }

    #[tokio::test]
    async fn an_invitation_goes_out_by_mail() {
        let mut tx = storing(LinkKind::Invitation, Action::InvitationSent);
        tx.expect_queue_account_mail()
            .once()
            .withf(|mail| mail.kind == LinkKind::Invitation && mail.url.contains("/panel/invitation/ps_ln_"))
            .returning(|_| Ok(()));
        let link = invite(&tx, &chance(), of(), "https://api.example", now())
            .await
            .unwrap();
        assert_eq!(link.expires_at, now() + TimeDelta::days(7));
    }

    #[tokio::test]
    async fn who_is_not_there_or_has_left_gets_no_link() {
        let mut nobody = MockTransaction::new();
        nobody.expect_lock_seller().returning(|_| Ok(None));
        let closed = knowing_sellers(MockTransaction::new(), true);
        for (tx, expected) in [(nobody, Refusal::NoSuchSeller), (closed, Refusal::SellerClosed)] {
            let link = make_sign_in_link(&tx, &chance(), of(), "", now()).await;
            assert_eq!(refusal(link), expected);
            assert_eq!(refusal(invite(&tx, &chance(), of(), "", now()).await), expected);
        }
    }
}
