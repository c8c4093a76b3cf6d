//! The marketplace registers a seller.

use chrono::{DateTime, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    Action, Application, ApplicationStore, ClientId, Email, LinkKind, NewSeller, PanelStore, PasswordHash,
    Seller, SellerName, SellerStore,
};

use crate::{ActingOperator, Failure, account_links::send_link};

/// A seller to be registered.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name of the business.
    pub name: SellerName,
    /// The address to sign in with.
    pub email: Email,
    /// None: the seller is invited by mail to set one.
    pub password: Option<PasswordHash>,
}

/// Why a seller is not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another account has this address.
    #[error("another seller has this e-mail address")]
    EmailTaken,
}

/// The ports that a registration needs.
#[derive(Clone, Copy)]
pub struct Stores<'a> {
    /// Accounts.
    pub sellers: &'a dyn SellerStore,
    /// Applications.
    pub applications: &'a dyn ApplicationStore,
    /// Links, mails, and the audit log.
    pub panel: &'a dyn PanelStore,
}

impl std::fmt::Debug for Stores<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stores")
    }
}

/// Makes the account, and with it the built-in application that will carry its personal tokens. Who has no password is
/// invited to set one, by a link under `public_url`.
pub async fn register_seller(
    stores: Stores<'_>,
    randomness: &dyn Randomness,
    (by, request): (ActingOperator, &Request),
    public_url: &str,
    now: DateTime<Utc>,
) -> Result<Seller, Failure<Refusal>> {
    let new = NewSeller {
        id: randomness.uuid().into(),
        name: request.name.clone(),
        email: request.email.clone(),
        password: request.password.clone(),
        created_at: now,
    };
    let seller = stores.sellers.add_seller(new).await.map_err(email_taken)?;
    let client_id = ClientId::from(randomness.uuid());
    stores
        .applications
        .save_application(Application::built_in(client_id, seller.id, now))
        .await?;
    if request.password.is_none() {
        let of = (&seller, LinkKind::Invitation);
        send_link(stores.panel, randomness, of, public_url, now).await?;
    }
    by.note(stores.panel, Action::SellerRegistered, seller.id).await?;
    Ok(seller)
}

fn email_taken(error: StoreError) -> Failure<Refusal> {
    match error.conflict() {
        Some("sellers_email_key") => Failure::Refused(Refusal::EmailTaken),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use kernel::SellerId;
    use oauth::{MockApplicationStore, MockPanelStore, MockSellerStore};

    use super::*;
    use crate::test_support::{chance, now};

    fn request(password: Option<&str>) -> Request {
        Request {
            name: SellerName::new("Kettles".to_owned()).unwrap(),
            email: Email::new("shop@example.com".to_owned()).unwrap(),
            password: password.map(|hash| PasswordHash::new(hash.to_owned())),
        }
    }

    async fn register(
        (sellers, applications, panel): (MockSellerStore, MockApplicationStore, MockPanelStore),
        password: Option<&str>,
    ) -> Result<Seller, Failure<Refusal>> {
        let stores = Stores {
            sellers: &sellers,
            applications: &applications,
            panel: &panel,
        };
        let request = (ActingOperator::CommandLine, &request(password));
        register_seller(stores, &chance(), request, "https://api.example", now()).await
    }

    #[tokio::test]
    async fn an_account_comes_with_its_built_in_application() {
        for (password, invitations) in [(Some("hash"), 0), (None, 1)] {
            let (mut sellers, mut applications, mut panel) = (
                MockSellerStore::new(),
                MockApplicationStore::new(),
                MockPanelStore::new(),
            );
            sellers
                .expect_add_seller()
                .once()
                .returning(|new| Ok(crate::test_support::seller(new.id)));
            applications
                .expect_save_application()
                .once()
                .withf(|change| change.after.built_in && change.after.secret.is_none())
                .returning(|_| Ok(()));
            panel.expect_add_link().times(invitations).returning(|_| Ok(()));
            panel
                .expect_queue_account_mail()
                .times(invitations)
                .withf(|mail| mail.kind == LinkKind::Invitation)
                .returning(|_| Ok(()));
            panel
                .expect_note()
                .once()
                .withf(|_, _, action, _| *action == Action::SellerRegistered)
                .returning(|_, _, _, _| Ok(()));
            let seller = register((sellers, applications, panel), password).await.unwrap();
            assert_ne!(seller.id, SellerId::from(uuid::Uuid::nil()));
        }
    }

    #[tokio::test]
    async fn a_taken_address_is_refused_and_nothing_else_is_made() {
        let mut sellers = MockSellerStore::new();
        let conflict = || StoreError::Conflict {
            constraint: "sellers_email_key".to_owned(),
        };
        sellers.expect_add_seller().returning(move |_| Err(conflict()));
        let stores = (sellers, MockApplicationStore::new(), MockPanelStore::new());
        let failure = register(stores, None).await.unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::EmailTaken)));
    }
}
