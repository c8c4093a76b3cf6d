//! What the commands work on: the database, and the names that people give to what is in it.

use std::fmt::Display;

use adapter_postgres::Database;
use anyhow::anyhow;
use oauth::{Application, Seller};
use usecases::{Failure, Work, close_seller, manage_application, redeliver, revoke_tokens, transact};

use super::super::{
    exit::Stopped,
    schema,
    values::{ApplicationName, SellerName},
};
use crate::{config::Config, wiring};

/// The database, with a schema that fits.
pub(in crate::cli) struct Office {
    pub(in crate::cli) database: Database,
}

impl Office {
    pub(in crate::cli) async fn open(config: &Config) -> anyhow::Result<Self> {
        let database = wiring::database(config)?;
        schema::require(&database).await?;
        Ok(Self { database })
    }

    /// The seller that is meant; closed ones too.
    pub(in crate::cli) async fn seller(&self, name: &SellerName) -> anyhow::Result<Seller> {
        let found = match name {
            SellerName::Id(id) => self.database.sellers().seller((*id).into()).await?,
            SellerName::Number(number) => {
                let from = number.saturating_sub(1);
                let next = self.database.sellers().sellers(from, 1).await?.pop();
                next.filter(|seller| seller.seller_no == *number)
            }
            SellerName::Email(email) => {
                let account = self.database.panel().account(email).await?;
                account.map(|account| account.seller)
            }
        };
        found.ok_or_else(|| {
            not_found(format_args!(
                "there is no seller {name}: `seller-api admin sellers list` shows all"
            ))
        })
    }

    /// The application that is meant.
    pub(super) async fn application(&self, name: &ApplicationName) -> anyhow::Result<Application> {
        let directory = self.database.application_directory();
        let found = match name {
            ApplicationName::Id(client_id) => directory.application(*client_id).await?,
            ApplicationName::Name(name) => directory.application_named(name).await?,
        };
        found.ok_or_else(|| {
            not_found(format_args!(
                "there is no application {name}: `seller-api admin applications list` shows all"
            ))
        })
    }

    /// Does something in a transaction of its own.
    pub(super) async fn change<W, R>(&self, work: &W) -> anyhow::Result<W::Done>
    where
        W: Work<Error = Failure<R>>,
        R: Missing + Send,
    {
        match transact(&*self.database.units(), work).await {
            Ok(done) => Ok(done),
            Err(Failure::Refused(refusal)) if refusal.is_missing() => Err(not_found(refusal)),
            Err(Failure::Refused(refusal)) => Err(anyhow!("{refusal}")),
            Err(Failure::Store(error)) => Err(error.into()),
        }
    }
}

fn not_found(why: impl Display) -> anyhow::Error {
    Stopped::NotFound(why.to_string()).into()
}

/// A refusal that may mean that what is to be changed is not there.
pub(super) trait Missing: Display {
    fn is_missing(&self) -> bool;
}

impl Missing for close_seller::Refusal {
    fn is_missing(&self) -> bool {
        matches!(self, Self::NoSuchSeller)
    }
}

impl Missing for manage_application::Refusal {
    fn is_missing(&self) -> bool {
        matches!(self, Self::NoSuchApplication)
    }
}

impl Missing for redeliver::Refusal {
    fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound)
    }
}

impl Missing for revoke_tokens::Refusal {
    fn is_missing(&self) -> bool {
        matches!(self, Self::NoSuchToken)
    }
}
