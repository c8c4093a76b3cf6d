//! Seeding, once: all in one transaction, through the use cases.
//!
//! Secrets are shown only when they are made, so what is about to be committed is written down first. Whether it was
//! committed tells the database at the next start.

use std::{fmt::Display, sync::Arc};

use adapter_postgres::Database;
use adapter_sealing::{Argon2Hasher, HashingBounds, SystemRandomness};
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Randomness as _, SellerId};
use oauth::{
    Email, PasswordHash, PasswordHasher as _, PersonalTokenRequest, RawRegistration, Scope, SellerName,
};
use usecases::{
    ActingOperator, Failure, Transaction, Work,
    feed_offer::feed_offer,
    manage_application::{self, move_application},
    operator_tokens::OperatorTokenCreation,
    personal_tokens,
    register_application::register_application,
    register_seller::{self, register_seller},
    transact,
};

use super::{
    data_dir::{ApplicationCredentials, Credentials, DataDir, Examples, SellerCredentials},
    plan::{ApplicationPlan, Plan, SellerPlan},
};

/// What seeding needs.
pub(super) struct Seeder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) database: &'a Database,
    pub(super) data_dir: &'a DataDir,
    pub(super) randomness: Arc<SystemRandomness>,
}

impl Seeder<'_> {
    /// The credentials of what was seeded earlier into this database, else of what is seeded now.
    pub(super) async fn seed_once(&self) -> anyhow::Result<Credentials> {
        for known in self.data_dir.known_credentials()? {
            if self.is_seeded(&known).await? {
                return Ok(known);
            }
        }
        self.seed().await.context("cannot seed the database")
    }

    async fn is_seeded(&self, known: &Credentials) -> anyhow::Result<bool> {
        let id = known
            .sellers
            .first()
            .and_then(|seller| seller.id.parse::<SellerId>().ok());
        let Some(id) = id else { return Ok(false) };
        Ok(self.database.sellers().seller(id).await?.is_some())
    }

    async fn seed(&self) -> anyhow::Result<Credentials> {
        let creation = OperatorTokenCreation {
            randomness: &*self.randomness,
            name: "sandbox",
        };
        let (_, operator) = transact(&*self.database.units(), &creation).await?;
        // Names are unique in a database: another data directory may have been seeded into this one before.
        let taken = !self.database.sellers().sellers(0, 1).await?.is_empty();
        let work = Seeding {
            plan: self.plan,
            data_dir: self.data_dir,
            randomness: &self.randomness,
            operator: operator.reveal().to_owned(),
            passwords: self.passwords().await?,
            suffix: taken.then(|| self.suffix()),
        };
        Ok(transact(&*self.database.units(), &work).await?)
    }

    async fn passwords(&self) -> anyhow::Result<Vec<(String, PasswordHash)>> {
        // One after the other.
        let hasher = Argon2Hasher::new(HashingBounds {
            at_a_time: 1,
            waiting: 0,
        });
        let mut passwords = Vec::new();
        for _ in &self.plan.sellers {
            let password = readable(&self.randomness.secret());
            let hash = hasher.hash(&password).await?;
            passwords.push((password, hash));
        }
        Ok(passwords)
    }

    fn suffix(&self) -> String {
        let id = self.randomness.uuid().simple().to_string();
        id.chars().rev().take(5).collect()
    }
}

/// 20 characters of 5 random bits each, without those that look alike.
fn readable(random: &[u8; 32]) -> String {
    let letters = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letter = |byte: &u8| letters.get(usize::from(byte % 32)).copied().map(char::from);
    random.iter().take(20).filter_map(letter).collect()
}

/// A refusal means that the plan breaks a rule.
pub(super) type SeedError = Failure<anyhow::Error>;

pub(super) fn refused<R: Display>(failure: Failure<R>) -> SeedError {
    match failure {
        Failure::Refused(refusal) => Failure::Refused(anyhow!("{refusal}")),
        Failure::Store(error) => Failure::Store(error),
    }
}

pub(super) fn invalid(error: impl Into<anyhow::Error>) -> SeedError {
    Failure::Refused(error.into())
}

/// The one transaction.
struct Seeding<'a> {
    plan: &'a Plan,
    data_dir: &'a DataDir,
    randomness: &'a SystemRandomness,
    operator: String,
    /// One for each seller.
    passwords: Vec<(String, PasswordHash)>,
    suffix: Option<String>,
}

#[async_trait]
impl Work for Seeding<'_> {
    type Done = Credentials;
    type Error = SeedError;

    async fn run(&self, transaction: &dyn Transaction) -> Result<Credentials, SeedError> {
        let mut sellers = Vec::new();
        for (plan, password) in self.plan.sellers.iter().zip(&self.passwords) {
            sellers.push(self.seller(transaction, plan, password).await?);
        }
        let credentials = Credentials {
            backoffice_token: self.operator.clone(),
            sellers,
            ..Credentials::default()
        };
        self.data_dir.prepare(&credentials).map_err(invalid)?;
        Ok(credentials)
    }
}

impl Seeding<'_> {
    async fn seller(
        &self,
        transaction: &dyn Transaction,
        plan: &SellerPlan,
        (password, hash): &(String, PasswordHash),
    ) -> Result<SellerCredentials, SeedError> {
        let now = transaction.now();
        let suffix = self
            .suffix
            .as_ref()
            .map(|suffix| format!("+{suffix}"))
            .unwrap_or_default();
        let email = format!("{}{suffix}@{}", plan.mailbox, plan.domain);
        let request = register_seller::Request {
            name: SellerName::new(plan.name.clone()).map_err(invalid)?,
            email: Email::new(email.clone()).map_err(invalid)?,
            password: Some(hash.clone()),
        };
        let stores = register_seller::Stores {
            sellers: transaction,
            applications: transaction,
            panel: transaction,
        };
        let request = (ActingOperator::CommandLine, &request);
        // Nobody is invited: all have a password.
        let seller = register_seller(stores, self.randomness, request, "", now)
            .await
            .map_err(refused)?;
        let mut applications = Vec::new();
        for application in &plan.applications {
            applications.push(self.application(transaction, seller.id, application, now).await?);
        }
        Ok(SellerCredentials {
            id: seller.id.to_string(),
            seller_no: seller.seller_no,
            email,
            password: password.clone(),
            personal_token: self.personal_token(transaction, seller.id, now).await?,
            examples: Examples {
                offer: self.offers(transaction, seller.id, plan).await?,
                ..Examples::default()
            },
            applications,
        })
    }

    async fn application(
        &self,
        transaction: &dyn Transaction,
        owner: SellerId,
        plan: &ApplicationPlan,
        now: DateTime<Utc>,
    ) -> Result<ApplicationCredentials, SeedError> {
        let suffix = self
            .suffix
            .as_ref()
            .map(|suffix| format!(" {suffix}"))
            .unwrap_or_default();
        let registration = RawRegistration {
            name: format!("{}{suffix}", plan.name),
            description: Some(plan.description.clone()),
            documentation_url: format!("https://{}/docs", plan.domain),
            purpose: plan.purpose.clone(),
            client_type: plan.client_type.clone(),
            redirect_uris: vec![format!("https://{}/oauth/callback", plan.domain)],
            scopes: plan.scopes.clone(),
            accept_terms: true,
        };
        let registration = registration.check().map_err(invalid)?;
        let (name, redirect_uris) = (registration.name.clone(), registration.redirect_uris.clone());
        let registered = register_application(
            transaction,
            transaction,
            self.randomness,
            (owner, oauth::Registrar::Seller),
            registration,
            now,
        )
        .await
        .map_err(refused)?;
        let mut status = registered.status;
        for step in &plan.moves {
            let stores = manage_application::Stores {
                applications: transaction,
                panel: transaction,
            };
            let by = ActingOperator::CommandLine;
            status = move_application(stores, by, registered.client_id, (*step).into())
                .await
                .map_err(refused)?
                .status;
        }
        Ok(ApplicationCredentials {
            client_id: registered.client_id.to_string(),
            client_secret: registered.client_secret.map(|secret| secret.reveal().to_owned()),
            name,
            status: status.as_str().to_owned(),
            scopes: plan.scopes.clone(),
            redirect_uris,
        })
    }

    async fn personal_token(
        &self,
        transaction: &dyn Transaction,
        seller: SellerId,
        now: DateTime<Utc>,
    ) -> Result<String, SeedError> {
        let stores = personal_tokens::Stores {
            sellers: transaction,
            applications: transaction,
            tokens: transaction,
        };
        let request = PersonalTokenRequest {
            name: "sandbox".to_owned(),
            scopes: Scope::IN_USE.map(|scope| scope.as_str().to_owned()).into(),
            expires_at: None,
        };
        let issued =
            personal_tokens::issue_personal_token(stores, self.randomness, seller, request, now).await;
        let issued = issued.map_err(refused)?;
        Ok(issued.token.token.reveal().to_owned())
    }

    /// Feeds the seller's offers, as if over the last weeks; gives the id of the newest one.
    async fn offers(
        &self,
        transaction: &dyn Transaction,
        seller: SellerId,
        plan: &SellerPlan,
    ) -> Result<Option<String>, SeedError> {
        let offers = plan.offers(|| self.randomness.uuid().into());
        let newest = offers.first().map(|offer| offer.feed.id.to_string());
        for offer in offers {
            feed_offer(transaction, seller, offer.feed, transaction.now() - offer.age).await?;
        }
        Ok(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_long_and_has_no_look_alikes() {
        let password = readable(&[
            0, 31, 32, 255, 8, 12, 14, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
            20, 21, 22, 23, 24,
        ]);
        assert_eq!(password.len(), 20);
        assert!(!password.contains(['l', 'o', '0', '1']), "{password}");
    }
}
