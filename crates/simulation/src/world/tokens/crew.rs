//! Who takes part in a run of tokens, and how they reach a process.

use std::{num::NonZeroU32, sync::Arc};

use chrono::TimeDelta;
use kernel::{Randomness, SellerId};
use oauth::{
    ClientId, CodeChallenge, CodePresented, CodeVerifier, Credential, CredentialKind, FamilyId, NewConsent,
    ScopeSet,
};
use usecases::{UnitOfWork, token_pair::Lifetimes, transact};

use super::{
    ending::Ending,
    endpoint::{Endpoint, Issued, Presented},
    ledger::{Held, Ledger},
};
use crate::{Admittance, Chance, Database, Link, Weather, world::ranks::Ranks};

/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "https://app.example/";

/// Everybody. Clones are the same ones.
#[derive(Clone)]
pub(super) struct Crew {
    pub(super) endpoint: Endpoint,
    pub(super) gate: Arc<Admittance>,
    pub(super) ledger: Ledger,
    pub(super) ranks: Ranks,
    /// Requests a minute that an application has.
    pub(super) limit: NonZeroU32,
    /// A seller with an application of its own, …
    pub(super) own: (SellerId, ClientId),
    /// … which has let in another one's.
    pub(super) others: ClientId,
}

impl Crew {
    pub(super) fn gather(database: &Database, weather: &Weather, ledger: &Ledger, ranks: &Ranks) -> Self {
        let link = Link::new(database, weather);
        let simulator = &ranks.simulator;
        let (limit, lifetime) =
            simulator.draw(|chance| (chance.u32(3..40), chance.choice(&[5, 600]).copied()));
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        let seller = database.found_seller();
        let own = (seller, database.found_application(seller));
        Self {
            gate: Arc::new(Admittance::new(&link, limit)),
            endpoint: Endpoint {
                simulator: simulator.clone(),
                link,
                lifetimes: Lifetimes {
                    access: TimeDelta::seconds(lifetime.unwrap_or(600)),
                    refresh: TimeDelta::days(1),
                },
            },
            ledger: ledger.clone(),
            ranks: ranks.clone(),
            limit,
            own,
            others: database.found_application(database.found_seller()),
        }
    }

    /// The seller consents a few times, while all is calm; the codes that come of it.
    pub(super) async fn consents(&self) -> Vec<Presented> {
        let number = self.endpoint.simulator.draw(|chance| chance.usize(1..=3));
        let mut codes = Vec::new();
        for _ in 0..number {
            codes.extend(self.consent().await);
        }
        codes
    }

    async fn consent(&self) -> Option<Presented> {
        let chance = Chance(self.endpoint.simulator.clone());
        let family = FamilyId::from(chance.uuid());
        let code = Credential::from_random(CredentialKind::AuthorizationCode, family, &chance.secret());
        let tx = self.endpoint.link.begin().await.ok()?;
        let consent = NewConsent {
            family,
            seller: self.own.0,
            client_id: self.others,
            scopes: ScopeSet::all(),
            code: code.key().hash,
            redirect_uri: REDIRECT.to_owned(),
            challenge: CodeChallenge::new(CHALLENGE.to_owned()).ok()?,
            expires_at: tx.now() + TimeDelta::minutes(1),
        };
        tx.add_consent(consent).await.ok()?;
        tx.commit().await.ok()?;
        let presented = CodePresented {
            client_id: self.others,
            redirect_uri: REDIRECT.to_owned(),
            verifier: CodeVerifier::new(VERIFIER.to_owned()).ok()?,
        };
        Some(Presented::Code(code.key(), presented))
    }

    /// Presents something to the token endpoint; nothing where no answer comes.
    pub(super) async fn present(&self, presented: Presented) -> Option<Issued> {
        let simulator = &self.endpoint.simulator;
        self.ranks.history.seen().requests += 1;
        let begun = simulator.now();
        let family = presented.key().family;
        let issuing = self.endpoint.clone().issue(presented);
        let (_, handle) = self.ranks.run(issuing)?;
        let issued = handle.ended().await?;
        self.ranks
            .history
            .note(simulator.now(), || format!("{family} was answered {issued:?}"));
        if let Issued::Pair(pair) = &issued {
            self.ledger.known().held.push(Held {
                key: pair.access.key(),
                client_id: self.others,
                seller: self.own.0,
                begun,
                told: simulator.now(),
            });
        }
        Some(issued)
    }

    /// Ends something, trying until it is done; false where it cannot be.
    pub(super) async fn end(&self, ending: Ending) -> bool {
        for _ in 0..60 {
            self.ranks.history.seen().requests += 1;
            let link = self.endpoint.link.clone();
            let done = self
                .ranks
                .run(async move { transact(&link, &ending).await.is_ok() });
            if let Some((_, handle)) = done
                && handle.ended().await == Some(true)
            {
                let now = self.endpoint.simulator.now();
                self.endpoint.simulator.count(ending.met());
                self.ranks.history.note(now, || format!("done: {ending:?}"));
                return true;
            }
            self.endpoint.simulator.pause(10, 1_000).await;
        }
        false
    }
}
