//! A seller registers an application, in the panel or through the marketplace.

use accounts::AccountStore;
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::{
    Application, ApplicationStatus, ApplicationStore, ClientId, ClientSecret, ClientType, Registrar,
    Registration,
};

use crate::Failure;
use crate::sellers::{NotOpen, lock_open};

/// A registered application, with its secret, which is shown only once.
#[derive(Debug)]
pub struct Registered {
    pub client_id: ClientId,
    /// None for a public client.
    pub client_secret: Option<ClientSecret>,
    /// Active, or pending if it needs acceptance.
    pub status: ApplicationStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no account, or it is closed.
    #[error(transparent)]
    Account(#[from] NotOpen),
    /// Another application has or had the name; names of deleted applications stay taken.
    #[error("another application has this name, or had it before it was deleted")]
    NameTaken,
}

/// Registers an application of `owner`, on behalf of the owner or of the marketplace.
pub async fn register_application(
    applications: &dyn ApplicationStore,
    accounts: &dyn AccountStore,
    randomness: &dyn Randomness,
    (owner, by): (SellerId, Registrar),
    registration: Registration,
    now: DateTime<Utc>,
) -> Result<Registered, Failure<Refusal>> {
    lock_open::<Refusal>(accounts, owner).await?;
    let secret = ClientSecret::from_random(&randomness.secret());
    let change = Application::register(
        registration,
        ClientId::from(randomness.uuid()),
        &secret,
        owner,
        by,
        now,
    );
    let (client_id, status) = (change.after.client_id, change.after.status);
    let confidential = change.after.client_type == ClientType::Confidential;
    applications.save_application(change).await.map_err(name_taken)?;
    Ok(Registered {
        client_id,
        client_secret: confidential.then_some(secret),
        status,
    })
}

fn name_taken(error: StoreError) -> Failure<Refusal> {
    match error.conflict() {
        Some("applications_name_key") => Failure::Refused(Refusal::NameTaken),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use oauth::RawRegistration;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{by, chance, knowing_sellers, now, refusal};

    fn registration(client_type: &str) -> Registration {
        RawRegistration {
            name: "Stock Sync".to_owned(),
            documentation_url: "https://docs.example".to_owned(),
            purpose: "for_other_sellers".to_owned(),
            client_type: client_type.to_owned(),
            scopes: vec!["offers:read".to_owned()],
            accept_terms: true,
            ..RawRegistration::default()
        }
        .check()
        .unwrap()
    }

    async fn register(closed: bool, client_type: &str) -> Result<Registered, Failure<Refusal>> {
        let mut tx = knowing_sellers(MockTransaction::new(), closed);
        tx.expect_save_application().returning(|_| Ok(()));
        let of = (by().seller, Registrar::Seller);
        register_application(&tx, &tx, &chance(), of, registration(client_type), now()).await
    }

    #[tokio::test]
    async fn only_a_confidential_client_is_given_a_secret_and_a_closed_account_nothing() {
        let confidential = register(false, "confidential").await.unwrap();
        assert!(confidential.client_secret.is_some());
        let public = register(false, "public").await.unwrap();
        assert!(public.client_secret.is_none());
        assert_eq!(public.status, ApplicationStatus::Pending);
        assert_eq!(
            refusal(register(true, "public").await),
            Refusal::Account(NotOpen::SellerClosed)
        );
    }
}
