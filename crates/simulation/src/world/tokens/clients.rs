//! Clients: those that obtain tokens, one that steals, and those that show tokens at the gate.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join;
use oauth::{BearerToken, Credential, Gate, Grant, ScopeSet, TokenKey};
use usecases::{issue_client_token::issue_client_token, revoke_token::Revocable};

use super::{
    crew::Crew,
    ending::Ending,
    endpoint::{Issued, Presented},
    ledger::{Asked, Ended, Held, Said},
};
use crate::{Chance, Met};

/// An application that refreshes its tokens. A careful one stops where no answer comes, for it may have been given a pair that
/// it knows nothing of; another one presents again what it has, which ends the family where it had been used.
pub(super) async fn consented(crew: Crew, code: Presented, careful: bool) {
    let simulator = crew.endpoint.simulator.clone();
    let family = code.key().family;
    let rotations = simulator.draw(|chance| chance.usize(1..=4));
    if careful {
        crew.ledger.known().careful.push(family);
    }
    let mut present = code;
    for _ in 0..=rotations {
        simulator.pause(0, 3_000).await;
        let begun = simulator.now();
        let issued = if !careful && simulator.happens(200) {
            present_twice(&crew, &present, begun).await
        } else {
            crew.present(present.clone()).await
        };
        match issued {
            Some(Issued::Pair(pair)) => {
                let next = Presented::Refresh(pair.refresh.key(), crew.others);
                let used = std::mem::replace(&mut present, next);
                if !careful && simulator.happens(200) {
                    steal(&crew, used).await;
                }
                if simulator.happens(150) {
                    give_back(&crew, &pair.access, &pair.refresh).await;
                }
            }
            Some(Issued::FamilyEnded) if careful => {
                let what = format!("{family} was ended though nobody has presented anything twice");
                crew.ranks.history.wrong(what);
                return;
            }
            Some(Issued::FamilyEnded) => {
                told_of_the_end(&crew, present.key(), begun);
                return;
            }
            Some(Issued::Refused) => return,
            Some(Issued::Failed) | None if careful => return,
            Some(Issued::Failed) | None => {
                // It may be presented for the second time from now on.
                crew.ledger.begin(Ended::Family(family), begun);
            }
        }
    }
}

/// Two of a client's threads present the same at once: one gets the pair, and the other one ends the family.
async fn present_twice(crew: &Crew, present: &Presented, begun: DateTime<Utc>) -> Option<Issued> {
    crew.endpoint.simulator.count(Met::PresentedTwice);
    crew.ledger.begin(Ended::Family(present.key().family), begun);
    let (one, other) = join(crew.present(present.clone()), crew.present(present.clone())).await;
    if let Some(Issued::FamilyEnded) = other {
        told_of_the_end(crew, present.key(), begun);
    }
    one
}

fn told_of_the_end(crew: &Crew, key: TokenKey, begun: DateTime<Utc>) {
    crew.endpoint.simulator.count(Met::FamilyEnded);
    let told = crew.endpoint.simulator.now();
    let place = crew.ledger.begin(Ended::Family(key.family), begun);
    crew.ledger.change(place, |end| end.told = Some(told));
}

/// Somebody else presents what was used.
async fn steal(crew: &Crew, used: Presented) {
    crew.endpoint.simulator.count(Met::Stolen);
    let begun = crew.endpoint.simulator.now();
    let key = used.key();
    let place = crew.ledger.begin(Ended::Family(key.family), begun);
    if let Some(Issued::FamilyEnded) = crew.present(used).await {
        let told = crew.endpoint.simulator.now();
        crew.ledger.change(place, |end| end.told = Some(told));
    }
}

/// The client gives one of its tokens back.
async fn give_back(crew: &Crew, access: &BearerToken, refresh: &Credential) {
    let simulator = &crew.endpoint.simulator;
    let token = if simulator.happens(500) {
        Revocable::Access(access.key())
    } else {
        Revocable::Refresh(refresh.key())
    };
    let ending = Ending::Revoke(token, crew.others);
    let place = crew.ledger.begin(ending.ended(), simulator.now());
    if crew.end(ending).await {
        let told = simulator.now();
        crew.ledger.change(place, |end| end.told = Some(told));
    }
}

/// An application that obtains tokens of its owner's account.
pub(super) async fn own(crew: Crew) {
    let simulator = crew.endpoint.simulator.clone();
    let (seller, client_id) = crew.own;
    for _ in 0..simulator.draw(|chance| chance.usize(1..=3)) {
        simulator.pause(0, 2_000).await;
        crew.ranks.history.seen().requests += 1;
        let (begun, link) = (simulator.now(), crew.endpoint.link.clone());
        let (chance, lifetime) = (Chance(simulator.clone()), crew.endpoint.lifetimes.access);
        let grant = Grant {
            seller,
            client_id,
            scopes: ScopeSet::all(),
        };
        let issuing = async move { issue_client_token(&link, &chance, grant, lifetime).await };
        let Some((_, handle)) = crew.ranks.run(issuing) else {
            continue;
        };
        if let Some(Ok(issued)) = handle.ended().await {
            crew.ledger.known().held.push(Held {
                key: issued.token.key(),
                client_id,
                seller,
                begun,
                told: simulator.now(),
            });
        }
    }
}

/// Shows tokens at the gate until all is calm, many in the same moment.
pub(super) async fn show_all(crew: Crew) {
    let simulator = crew.endpoint.simulator.clone();
    while !crew.ranks.is_calm() {
        let known = crew.ledger.known().held.clone();
        for held in known {
            if simulator.happens(600) {
                let crew = crew.clone();
                drop(simulator.spawn(crate::Place::World, async move { show(&crew, held).await }));
            }
        }
        simulator.pause(5, 600).await;
    }
}

/// Shows each token once more.
pub(super) async fn show_each(crew: &Crew) {
    let known = crew.ledger.known().held.clone();
    for held in known {
        show(crew, held).await;
    }
    crew.endpoint.simulator.sleep(TimeDelta::seconds(1)).await;
}

async fn show(crew: &Crew, held: Held) {
    let simulator = &crew.endpoint.simulator;
    crew.ranks.history.seen().requests += 1;
    let (gate, key, begun) = (crew.gate.clone(), held.key, simulator.now());
    let Some((_, handle)) = crew.ranks.run(async move { gate.admit(key).await }) else {
        return;
    };
    let answer = match handle.ended().await {
        None | Some(Err(_)) => Said::Nothing,
        Some(Ok(None)) => Said::Dead,
        Some(Ok(Some(admission))) => Said::Lives(admission.quota),
    };
    let expired = begun >= held.told + crew.endpoint.lifetimes.access;
    simulator.count(match answer {
        Said::Nothing => Met::GateSilent,
        Said::Dead if expired => Met::TokenExpired,
        Said::Dead => Met::TokenEnded,
        Said::Lives(quota) if quota.admits() => Met::Admitted,
        Said::Lives(_) => Met::BeyondLimit,
    });
    crew.ledger.known().asked.push(Asked {
        held,
        begun,
        ended: simulator.now(),
        answer,
    });
}
