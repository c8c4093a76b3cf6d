//! A process of the API: what its listeners do around the use cases, step by step as they do it.

use std::time::Duration;

use kernel::{Claim, Claimed, Fingerprint, IdempotencyClaims, IdempotencyKey, Randomness, Remembered};
use usecases::{Failure, Ran, Remembering, once, ship_order, transact};

use super::{
    carriers::Carriers,
    deed::{Deed, Failed, Prepared, failed},
    history::Reply,
};
use crate::{Chance, Link, Met};

/// What a process needs.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) link: Link,
    pub(crate) chance: Chance,
    pub(crate) carriers: Carriers,
    pub(crate) lease: Duration,
}

/// The request is still running, under this key.
pub(crate) const IN_PROGRESS: u16 = 409;

fn reply(status: u16, body: &impl ToString) -> Reply {
    Reply {
        status,
        body: body.to_string(),
    }
}

fn known(remembered: &Remembered) -> Reply {
    reply(remembered.status, &String::from_utf8_lossy(&remembered.body))
}

impl Process {
    /// Answers a request with a key.
    pub(crate) async fn handle(&self, key: &str, deed: Deed) -> Reply {
        let claim = match IdempotencyKey::new(key.as_bytes()) {
            Err(invalid) => return reply(400, &invalid),
            Ok(key) => Claim {
                space: deed.space(),
                key,
                fingerprint: Fingerprint::of(&[format!("{deed:?}").as_bytes()]),
                fence: self.chance.uuid(),
            },
        };
        match self.link.claim(&claim, self.lease).await {
            Ok(Claimed::Run) => match once(&self.link, &claim, self.run(&claim, deed)).await {
                Ok(Ran::Done(reply)) => reply,
                Ok(Ran::Known(remembered)) => known(&remembered),
                Err(Failure::Refused(refused)) => reply(422, &refused),
                Err(Failure::Store(error)) => reply(500, &error),
            },
            Ok(Claimed::InProgress) => reply(IN_PROGRESS, &"in progress"),
            Ok(Claimed::Reused) => reply(422, &"the key is another request's"),
            Ok(Claimed::Completed(remembered)) => {
                self.chance.0.count(Met::AnswerRemembered);
                known(&remembered)
            }
            Err(error) => {
                // The claim may stand though its answer was lost, and nobody runs it.
                drop(self.link.release(&claim).await);
                reply(500, &error)
            }
        }
    }

    async fn run(&self, claim: &Claim, deed: Deed) -> Result<Reply, Failed> {
        let sighting = match &deed {
            Deed::Ship(seller, report) => {
                let part = ship_order::check_report(&self.link, *seller, report)
                    .await
                    .map_err(failed)?;
                let (carrier, number) = (report.carrier, &report.tracking_number);
                ship_order::ask_carrier(&self.carriers, part.is_test, carrier, number).await
            }
            _ => None,
        };
        let prepared = Prepared {
            deed,
            sighting,
            chance: self.chance.clone(),
        };
        let work = Remembering {
            work: &prepared,
            claim: Some(claim),
        };
        transact(&self.link, &work).await
    }
}
