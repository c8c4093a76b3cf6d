//! The marketplace registers a seller.

use chrono::{DateTime, Utc};
use kernel::{Randomness, StoreError};
use oauth::{
    Application, ApplicationStore, ClientId, Email, NewSeller, PasswordHash, Seller, SellerName, SellerStore,
};

use crate::Failure;

/// A seller to be registered.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name of the business.
    pub name: SellerName,
    /// The address to sign in with.
    pub email: Email,
    /// None until the seller sets a password.
    pub password: Option<PasswordHash>,
}

/// Why a seller is not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another account has this address.
    #[error("another seller has this e-mail address")]
    EmailTaken,
}

/// Makes the account, and with it the built-in application that will carry its personal tokens.
pub async fn register_seller(
    sellers: &dyn SellerStore,
    applications: &dyn ApplicationStore,
    randomness: &dyn Randomness,
    request: &Request,
    now: DateTime<Utc>,
) -> Result<Seller, Failure<Refusal>> {
    let new = NewSeller {
        id: randomness.uuid().into(),
        name: request.name.clone(),
        email: request.email.clone(),
        password: request.password.clone(),
        created_at: now,
    };
    let seller = sellers.add_seller(new).await.map_err(email_taken)?;
    let client_id = ClientId::from(randomness.uuid());
    applications
        .save_application(Application::built_in(client_id, seller.id, now))
        .await?;
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
    use oauth::{MockApplicationStore, MockSellerStore};

    use super::*;
    use crate::test_support::{chance, now};

    fn request() -> Request {
        Request {
            name: SellerName::new("Kettles".to_owned()).unwrap(),
            email: Email::new("shop@example.com".to_owned()).unwrap(),
            password: None,
        }
    }

    #[tokio::test]
    async fn an_account_comes_with_its_built_in_application() {
        let (mut sellers, mut applications) = (MockSellerStore::new(), MockApplicationStore::new());
        sellers
            .expect_add_seller()
            .once()
            .returning(|new| Ok(crate::test_support::seller(new.id)));
        applications
            .expect_save_application()
            .once()
            .withf(|change| change.after.built_in && change.after.secret.is_none())
            .returning(|_| Ok(()));
        let seller = register_seller(&sellers, &applications, &chance(), &request(), now())
            .await
            .unwrap();
        assert_ne!(seller.id, SellerId::from(uuid::Uuid::nil()));
    }

    #[tokio::test]
    async fn a_taken_address_is_refused_and_nothing_else_is_made() {
        let (mut sellers, applications) = (MockSellerStore::new(), MockApplicationStore::new());
        let conflict = || StoreError::Conflict {
            constraint: "sellers_email_key".to_owned(),
        };
        sellers.expect_add_seller().returning(move |_| Err(conflict()));
        let failure = register_seller(&sellers, &applications, &chance(), &request(), now())
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::EmailTaken)));
    }
}
