//! What is changed of an application, each in a transaction of its own.

use async_trait::async_trait;
use oauth::{Application, ClientId, RateLimit};
use usecases::{
    ActingOperator, Failure, Transaction, Work,
    manage_application::{Move, Refusal, Stores, adjust_application, delete_application, move_application},
};

const BY: ActingOperator = ActingOperator::CommandLine;

/// What is changed.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Move(Move),
    Limit(RateLimit),
}

/// A change of an application that stays.
pub(super) struct Changing(pub(super) ClientId, pub(super) Change);

#[async_trait]
impl Work for Changing {
    type Done = Application;
    type Error = Failure<Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Application, Self::Error> {
        match self.1 {
            Change::Move(step) => move_application(stores(tx), BY, self.0, step).await,
            Change::Limit(limit) => adjust_application(stores(tx), BY, self.0, (Some(limit), None)).await,
        }
    }
}

/// The end of an application.
pub(super) struct Deletion(pub(super) ClientId);

#[async_trait]
impl Work for Deletion {
    type Done = ();
    type Error = Failure<Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<(), Self::Error> {
        delete_application(stores(tx), BY, self.0).await
    }
}

fn stores(tx: &dyn Transaction) -> Stores<'_> {
    Stores {
        applications: tx,
        panel: tx,
    }
}
