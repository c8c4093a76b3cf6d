//! The marketplace makes links for its sellers: invitations that go out by mail, and links that sign in who is signed in
//! elsewhere.

use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId};
use oauth::{Action, Link, LinkKind, PanelStore, Seller, SellerStore};

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
    (sellers, panel): (&dyn SellerStore, &dyn PanelStore),
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<SignInLink, Failure<Refusal>> {
    let seller = open(sellers, seller).await?;
    let (secret, link) = make_link(panel, randomness, seller.id, LinkKind::SignIn, now).await?;
    by.note(panel, Action::SignInLinkMade, seller.id).await?;
    Ok(SignInLink {
        url: link_url(public_url, LinkKind::SignIn, &secret),
        expires_at: link.expires_at,
    })
}

/// Sends an invitation again; the one before it is useless from then on.
pub async fn invite(
    (sellers, panel): (&dyn SellerStore, &dyn PanelStore),
    randomness: &dyn Randomness,
    (by, seller): (ActingOperator, SellerId),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<Link, Failure<Refusal>> {
    let seller = open(sellers, seller).await?;
    let of = (&seller, LinkKind::Invitation);
    let link = send_link(panel, randomness, of, public_url, now).await?;
    by.note(panel, Action::InvitationSent, seller.id).await?;
    Ok(link)
}

/// The account, locked, where it is open.
async fn open(sellers: &dyn SellerStore, id: SellerId) -> Result<Seller, Failure<Refusal>> {
    match sellers.lock_seller(id).await? {
        None => refuse(Refusal::NoSuchSeller),
        Some(seller) if seller.closed_at.is_some() => refuse(Refusal::SellerClosed),
        Some(seller) => Ok(seller),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use oauth::{Actor, LinkSecret, MockPanelStore, MockSellerStore};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{chance, now, seller};

    const HOME: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn of() -> (ActingOperator, SellerId) {
        let by = ActingOperator::Token(Uuid::from_u128(5), HOME);
        (by, Uuid::from_u128(1).into())
    }

    fn sellers(account: Option<Seller>) -> MockSellerStore {
        let mut sellers = MockSellerStore::new();
        sellers
            .expect_lock_seller()
            .returning(move |_| Ok(account.clone()));
        sellers
    }

    /// Stores one link of this kind, and notes this.
    fn storing(kind: LinkKind, action: Action) -> MockPanelStore {
        let mut panel = MockPanelStore::new();
        let hash = LinkSecret::from_random(&[7; 32]).hash();
        panel
            .expect_add_link()
            .once()
            .withf(move |link| (link.hash, link.kind, link.seller) == (hash, kind, of().1))
            .returning(|_| Ok(()));
        panel
            .expect_note()
            .once()
            .withf(move |actor, address, noted, subject| {
                let by = (Actor::Operator(Uuid::from_u128(5)), Some(HOME));
                (*actor, *address) == by && *noted == action && subject == of().1.to_string()
            })
            .returning(|_, _, _, _| Ok(()));
        panel
    }

    #[tokio::test]
    async fn a_sign_in_link_is_the_one_that_is_stored_and_lasts_a_minute() {
        let panel = storing(LinkKind::SignIn, Action::SignInLinkMade);
        let account = sellers(Some(seller(of().1)));
        let link = make_sign_in_link((&account, &panel), &chance(), of(), "https://api.example", now())
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
        let mut panel = storing(LinkKind::Invitation, Action::InvitationSent);
        panel
            .expect_queue_account_mail()
            .once()
            .withf(|mail| mail.kind == LinkKind::Invitation && mail.url.contains("/panel/invitation/ps_ln_"))
            .returning(|_| Ok(()));
        let account = sellers(Some(seller(of().1)));
        let link = invite((&account, &panel), &chance(), of(), "https://api.example", now())
            .await
            .unwrap();
        assert_eq!(link.expires_at, now() + TimeDelta::days(7));
    }

    #[tokio::test]
    async fn who_is_not_there_or_has_left_gets_no_link() {
        let closed = Seller {
            closed_at: Some(now()),
            ..seller(of().1)
        };
        for (account, refusal) in [
            (None, Refusal::NoSuchSeller),
            (Some(closed), Refusal::SellerClosed),
        ] {
            let (account, panel) = (sellers(account), MockPanelStore::new());
            let ports: (&dyn SellerStore, &dyn PanelStore) = (&account, &panel);
            let link = make_sign_in_link(ports, &chance(), of(), "", now()).await;
            assert!(matches!(link, Err(Failure::Refused(refused)) if refused == refusal));
            let link = invite(ports, &chance(), of(), "", now()).await;
            assert!(matches!(link, Err(Failure::Refused(refused)) if refused == refusal));
        }
    }
}
