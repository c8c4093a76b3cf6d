//! What ends tokens: clients, sellers and operators who say so.

use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;
use kernel::SellerId;
use oauth::{ClientId, FamiliesOf};
use usecases::{
    ActingOperator, ActingSeller, Failure, Transaction, UnitOfWorkError, Work,
    connections::disconnect,
    manage_application::{Move, Stores, delete_application, move_application},
    revoke_token::{Revocable, revoke_token},
    revoke_tokens::revoke_all,
};

use super::ledger::Ended;
use crate::Met;

/// Something that ends tokens, or lets them live again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ending {
    Revoke(Revocable, ClientId),
    RevokeAll(ClientId),
    Disconnect(SellerId, ClientId),
    Move(ClientId, Move),
    Delete(ClientId),
}

impl Ending {
    /// What it ends.
    pub(super) const fn ended(&self) -> Ended {
        match self {
            Self::Revoke(Revocable::Access(key), _) => Ended::Token(*key),
            Self::Revoke(Revocable::Refresh(key), _) => Ended::Family(key.family),
            Self::RevokeAll(client_id) => Ended::Families(*client_id),
            Self::Disconnect(seller, client_id) => Ended::Connection(*seller, *client_id),
            Self::Move(client_id, _) => Ended::Suspended(*client_id),
            Self::Delete(client_id) => Ended::Deleted(*client_id),
        }
    }

    /// What a run has met once it is done.
    pub(super) const fn met(&self) -> Met {
        match self {
            Self::Revoke(..) => Met::GivenBack,
            Self::RevokeAll(_) => Met::AllRevoked,
            Self::Disconnect(..) => Met::Disconnected,
            Self::Move(_, Move::Suspend) => Met::Suspended,
            Self::Move(_, _) => Met::Reinstated,
            Self::Delete(_) => Met::Deleted,
        }
    }
}

#[async_trait]
impl Work for Ending {
    type Done = ();
    type Error = UnitOfWorkError;

    /// What is refused is done already: nobody else does it.
    async fn run(&self, tx: &dyn Transaction) -> Result<(), UnitOfWorkError> {
        let operator = ActingOperator::CommandLine;
        let stores = Stores {
            applications: tx,
            panel: tx,
        };
        match *self {
            Self::Revoke(token, client_id) => Ok(revoke_token(tx, token, client_id).await?),
            Self::RevokeAll(client_id) => {
                let of = FamiliesOf::Application(client_id);
                done(revoke_all((tx, tx), operator, of).await)
            }
            Self::Disconnect(seller, client_id) => {
                let by = ActingSeller {
                    seller,
                    address: IpAddr::V4(Ipv4Addr::LOCALHOST),
                };
                done(disconnect(tx, tx, by, client_id).await)
            }
            Self::Move(client_id, step) => done(move_application(stores, operator, client_id, step).await),
            Self::Delete(client_id) => done(delete_application(stores, operator, client_id).await),
        }
    }
}

fn done<T, R>(outcome: Result<T, Failure<R>>) -> Result<(), UnitOfWorkError> {
    match outcome {
        Ok(_) | Err(Failure::Refused(_)) => Ok(()),
        Err(Failure::Store(error)) => Err(error),
    }
}
