//! The marketplace registers sellers and closes their accounts.

use accounts::{AccountStore, Action, LinkKind, NewSeller, Seller};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{Application, ApplicationStore, ClientId};

use crate::{ActingOperator, Announcement, Failure, account_links::send_link, failure::refuse};

/// Another account has the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another seller has this e-mail address")]
pub struct EmailTaken;

/// Creates the account and its built-in application, which carries its personal tokens. A seller without a
/// password gets an invitation with a link under `public_url` to set one.
pub async fn register_seller(
    applications: &dyn ApplicationStore<Announcement>,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    by: ActingOperator,
    new: NewSeller,
    public_url: &str,
    link_interval: TimeDelta,
) -> Result<Seller, Failure<EmailTaken>> {
    let (now, is_invited) = (new.created_at, new.password.is_none());
    let seller = accounts.add_seller(new).await.map_err(email_taken)?;
    let client_id = ClientId::from(randomness.uuid());
    let built_in = Application::built_in(client_id, seller.id, now);
    let built_in = Announcement::of_application(built_in, now);
    applications.save_application(built_in).await?;
    if is_invited {
        let kind = LinkKind::Invitation;
        send_link(
            accounts,
            randomness,
            &seller,
            kind,
            public_url,
            link_interval,
            now,
        )
        .await?;
    }
    by.log(accounts, Action::SellerRegistered, seller.id).await?;
    Ok(seller)
}

fn email_taken(error: StoreError) -> Failure<EmailTaken> {
    match error.conflict() {
        Some("sellers_email_key") => Failure::Refused(EmailTaken),
        _ => error.into(),
    }
}

/// Why an account cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOpen {
    #[error("no such seller")]
    NoSuchSeller,
    #[error("the seller's account is closed")]
    SellerClosed,
}

/// Locks the account; refuses if it is not open.
pub(crate) async fn lock_open<R: From<NotOpen>>(
    accounts: &dyn AccountStore,
    id: SellerId,
) -> Result<Seller, Failure<R>> {
    match accounts.lock_seller(id).await? {
        None => refuse(NotOpen::NoSuchSeller.into()),
        Some(seller) if seller.closed_at.is_some() => refuse(NotOpen::SellerClosed.into()),
        Some(seller) => Ok(seller),
    }
}

/// There is no such account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such seller")]
pub struct NoSuchSeller;

/// Closes the account and returns it. Its tokens and sessions are rejected from the commit on. Idempotent.
pub async fn close_seller(
    accounts: &dyn AccountStore,
    by: ActingOperator,
    id: SellerId,
    now: DateTime<Utc>,
) -> Result<Seller, Failure<NoSuchSeller>> {
    let Some(seller) = accounts.lock_seller(id).await? else {
        return refuse(NoSuchSeller);
    };
    if seller.closed_at.is_some() {
        return Ok(seller);
    }
    accounts.close_seller(id, now).await?;
    by.log(accounts, Action::SellerClosed, id).await?;
    Ok(Seller {
        closed_at: Some(now),
        ..seller
    })
}

#[cfg(test)]
mod tests {
    use accounts::{Email, PasswordHash, SellerName};
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{OPERATOR, chance, logging, now, refusal, seller};

    fn id() -> SellerId {
        Uuid::from_u128(1).into()
    }

    async fn register(tx: MockTransaction, password: Option<&str>) -> Result<Seller, Failure<EmailTaken>> {
        let new = NewSeller {
            id: id(),
            name: SellerName::new("Kettles".to_owned()).unwrap(),
            email: Email::new("shop@example.com".to_owned()).unwrap(),
            password: password.map(|hash| PasswordHash::new(hash.to_owned())),
            created_at: now(),
        };
        register_seller(
            &tx,
            &tx,
            &chance(),
            OPERATOR,
            new,
            "https://api.example",
            TimeDelta::zero(),
        )
        .await
    }

    #[tokio::test]
    async fn an_account_comes_with_its_built_in_application() {
        for (password, invitations) in [(Some("hash"), 0), (None, 1)] {
            let mut tx = logging(1, Action::SellerRegistered);
            tx.expect_add_seller().once().returning(|new| Ok(seller(new.id)));
            tx.expect_save_application()
                .once()
                .withf(|change| change.after.built_in && change.after.secret.is_none())
                .returning(|_| Ok(()));
            tx.expect_add_link().times(invitations).returning(|_| Ok(()));
            tx.expect_queue_account_mail()
                .times(invitations)
                .withf(|mail| mail.kind == LinkKind::Invitation)
                .returning(|_| Ok(()));
            let seller = register(tx, password).await.unwrap();
            assert_eq!(seller.id, id());
        }
    }

    #[tokio::test]
    async fn an_account_is_closed_and_logged_once() {
        let earlier = now() - TimeDelta::days(1);
        for (closed_at, times) in [(None, 1), (Some(earlier), 0)] {
            let mut tx = logging(times, Action::SellerClosed);
            tx.expect_lock_seller().returning(move |id| {
                let mut seller = seller(id);
                seller.closed_at = closed_at;
                Ok(Some(seller))
            });
            tx.expect_close_seller().times(times).returning(|_, _| Ok(true));
            let closed = close_seller(&tx, OPERATOR, id(), now()).await.unwrap();
            assert_eq!(closed.closed_at, Some(closed_at.unwrap_or(now())));
        }
        let mut unknown = MockTransaction::new();
        unknown.expect_lock_seller().returning(|_| Ok(None));
        let refused = close_seller(&unknown, OPERATOR, id(), now()).await;
        assert_eq!(refusal(refused), NoSuchSeller);
    }
}
