//! The judgement of a run of tokens.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use oauth::{ClientId, Quota};

use super::ledger::{Asked, Ended, Known, Said};
use crate::Database;

/// How long a question may be under way before it is counted at last.
const UNDER_WAY: TimeDelta = TimeDelta::seconds(16);

pub(super) fn wrongs(known: &Known, database: &Database, limit: u32, lifetime: TimeDelta) -> Vec<String> {
    let mut wrongs: Vec<_> = known
        .asked
        .iter()
        .filter_map(|asked| life(known, asked, lifetime))
        .collect();
    wrongs.extend(windows(known, limit));
    wrongs.extend(families(known, database));
    wrongs
}

/// No token lives after its end was told, and none dies without one.
fn life(known: &Known, asked: &Asked, lifetime: TimeDelta) -> Option<String> {
    let held = &asked.held;
    let of = known.ends.iter().filter(|end| end.of.ends(held));
    let expired = asked.begun >= held.told + lifetime;
    // Families that began after the end was asked for are not among those that it ended.
    let dead = of.clone().find(|end| {
        let before = !matches!(end.of, Ended::Families(_)) || held.told < end.begun;
        let told = end.told.is_some_and(|told| told < asked.begun);
        before && told && end.undone.is_none_or(|undone| undone > asked.ended)
    });
    let doubtful = of.clone().any(|end| end.begun <= asked.ended) || asked.ended >= held.begun + lifetime;
    match asked.answer {
        Said::Lives(_) if expired => Some(format!("{:?} lives after its time: {asked:?}", held.key)),
        Said::Lives(_) => dead.map(|end| format!("a token lives after {end:?}: {asked:?}")),
        Said::Dead if !doubtful => Some(format!("a token died of nothing: {asked:?}")),
        _ => None,
    }
}

type Window = (ClientId, DateTime<Utc>);

/// Each request has a place of its own, no place is left out but for a request that failed, and the limit is the limit.
fn windows(known: &Known, limit: u32) -> Vec<String> {
    let mut places = BTreeMap::<Window, Vec<Quota>>::new();
    for asked in &known.asked {
        if let Said::Lives(quota) = asked.answer {
            let window = (asked.held.client_id, quota.resets_at);
            places.entry(window).or_default().push(quota);
        }
    }
    let mut wrongs = Vec::new();
    for ((client_id, resets_at), quotas) in places {
        let distinct: BTreeSet<_> = quotas.iter().map(|quota| quota.place).collect();
        let most = distinct.last().copied().unwrap_or_default();
        let failed = known.asked.iter().filter(|asked| {
            let about =
                asked.begun < resets_at && asked.ended + UNDER_WAY >= resets_at - TimeDelta::minutes(1);
            asked.held.client_id == client_id && matches!(asked.answer, Said::Nothing) && about
        });
        let answered = u64::try_from(quotas.len()).unwrap_or(u64::MAX);
        let lost = u64::try_from(failed.count()).unwrap_or(u64::MAX);
        let admitted = quotas.iter().filter(|quota| quota.admits()).count();
        let fine = distinct.len() == quotas.len()
            && most <= answered.saturating_add(lost)
            && admitted <= usize::try_from(limit).unwrap_or(usize::MAX);
        if !fine {
            wrongs.push(format!(
                "{client_id} has the places {distinct:?} of {answered} requests, {lost} failed"
            ));
        }
    }
    wrongs
}

/// Of each family one refresh token is unused at most, what was handed out is there, and the family of a careful client ends
/// by nothing but what ends it.
fn families(known: &Known, database: &Database) -> Vec<String> {
    let mut wrongs = Vec::new();
    for family in database.families() {
        let unused = family.refresh_tokens.iter().filter(|used| !**used).count();
        if unused > 1 {
            wrongs.push(format!("{} has {unused} refresh tokens", family.id));
        }
        let ended = known.ends.iter().any(|end| match end.of {
            Ended::Family(id) => id == family.id,
            Ended::Families(client_id) => client_id == family.client_id,
            _ => false,
        });
        if known.careful.contains(&family.id) && family.revoked && !ended {
            wrongs.push(format!(
                "{} was ended though nobody did anything wrong",
                family.id
            ));
        }
    }
    let there = database.access_tokens();
    let handed_out = known
        .held
        .iter()
        .map(|held| (held.key.family, *held.key.hash.bytes()));
    let missing = handed_out.filter(|key| !there.contains(key)).count();
    wrongs.extend((missing > 0).then(|| format!("{missing} tokens were handed out and are not there")));
    wrongs
}
