//! The ports that read, over the world.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    Account, Application, ApplicationReader, ClientId, ConnectedApplication, Count, GrantReader, HourlyUsage,
    Limiter, Link, MockApplicationReader, MockGrantReader, PanelReader, PasswordHash, PersonalToken,
    RateCounter, SecretHash, Seller, SellerReader, SignedIn, Subject,
};

use super::world::Shared;

pub(crate) struct Readers(pub(crate) Shared);

impl Readers {
    /// A mock, so that a method which is added to the port does not concern these tests.
    pub(crate) fn grants(&self) -> impl GrantReader + use<> {
        let (mut grants, world) = (MockGrantReader::new(), self.0.clone());
        grants.expect_connections().returning(move |seller| {
            let world = world.there()?;
            let own = world.connections.iter().filter(|(owner, _)| *owner == seller);
            Ok::<Vec<ConnectedApplication>, _>(own.map(|(_, connection)| connection.clone()).collect())
        });
        grants
    }

    pub(crate) fn applications(&self) -> impl ApplicationReader + use<> {
        let (mut applications, world) = (MockApplicationReader::new(), self.0.clone());
        let other = world.clone();
        applications.expect_client().returning(move |id: ClientId| {
            let world = world.there()?;
            let mut all = world.applications.iter();
            Ok(all.find(|application| application.client_id == id).cloned())
        });
        applications.expect_applications_of().returning(move |owner| {
            let world = other.there()?;
            let own = |application: &&Application| application.owner == owner && !application.built_in;
            Ok(world.applications.iter().filter(own).cloned().collect())
        });
        applications
    }
}

#[async_trait]
impl PanelReader for Readers {
    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let world = self.0.there()?;
        let seller = world
            .sellers
            .iter()
            .find(|seller| seller.email.eq_ignore_ascii_case(email));
        Ok(seller.map(|seller| Account {
            seller: seller.clone(),
            password: world.passwords.get(&seller.id).cloned(),
        }))
    }

    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        Ok(self.0.there()?.passwords.get(&seller).cloned())
    }

    async fn signed_in(&self, hash: SecretHash) -> Result<Option<SignedIn>, StoreError> {
        let world = self.0.there()?;
        let session = world.sessions.iter().find(|session| session.hash == hash);
        let session = session.filter(|session| session.is_alive(world.now));
        Ok(session.and_then(|session| {
            let seller = world.sellers.iter().find(|seller| seller.id == session.seller)?;
            seller.closed_at.is_none().then(|| SignedIn {
                seller: seller.clone(),
                session: *session,
                now: world.now,
            })
        }))
    }

    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError> {
        let world = self.0.there()?;
        let link = world
            .links
            .iter()
            .find(|link| link.hash == hash && world.now < link.expires_at);
        Ok(link.and_then(|link| {
            let seller = world.sellers.iter().find(|seller| seller.id == link.seller)?;
            Some((*link, seller.clone()))
        }))
    }

    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError> {
        let world = self.0.there()?;
        let own = world.tokens.iter().filter(|(owner, _)| *owner == seller);
        Ok(own.map(|(_, token)| token.clone()).collect())
    }

    async fn usage(
        &self,
        _client_id: ClientId,
        _since: DateTime<Utc>,
    ) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
        Ok((self.0.there()?.usage.clone(), 30))
    }
}

#[async_trait]
impl SellerReader for Readers {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let world = self.0.there()?;
        Ok(world.sellers.iter().find(|seller| seller.id == id).cloned())
    }

    async fn sellers(&self, _after: i32, _limit: u16) -> Result<Vec<Seller>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl RateCounter for Readers {
    async fn count(&self, limiter: Limiter, _subject: Subject) -> Result<Count, StoreError> {
        let world = self.0.there()?;
        let (by_address, by_account) = world.places;
        let place = match limiter {
            Limiter::SignInByAddress => by_address,
            _ => by_account,
        };
        Ok(Count {
            place,
            resets_at: world.now + TimeDelta::seconds(20),
            counted_at: world.now,
        })
    }
}
