//! Somebody who makes trouble: kills processes and changes the weather.

use super::ranks::Ranks;
use crate::{Place, Weather};

/// How much trouble there is in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    /// So many of a thousand calls go wrong in bad weather.
    pub(crate) per_mille: u32,
    /// How long a process lives at most, in milliseconds; none dies where it is nothing.
    pub(crate) lifetime: Option<i64>,
}

impl Trouble {
    /// As much as the lot says; in some runs there is none.
    pub(crate) fn drawn(chance: &mut fastrand::Rng) -> Self {
        let lifetimes = [None, Some(2_000), Some(8_000), Some(30_000)];
        Self {
            per_mille: *chance.choice(&[0, 20, 80, 200]).unwrap_or(&0),
            lifetime: *chance.choice(&lifetimes).unwrap_or(&None),
        }
    }
}

/// Makes trouble until all is to be calm.
pub(crate) fn disturb(ranks: &Ranks, weather: &Weather, trouble: Trouble) {
    let simulator = ranks.simulator.clone();
    let (clouds, sky) = (weather.clone(), ranks.clone());
    drop(simulator.spawn(Place::World, async move {
        while !sky.is_calm() {
            let bad = sky.simulator.happens(700);
            clouds.set(if bad { trouble.per_mille } else { 0 });
            sky.simulator.pause(100, 8_000).await;
        }
        clouds.set(0);
    }));
    let Some(lifetime) = trouble.lifetime else { return };
    for number in 0..ranks.number() {
        let ranks = ranks.clone();
        drop(simulator.spawn(Place::World, async move {
            loop {
                ranks.simulator.pause(10, lifetime).await;
                if ranks.is_calm() {
                    break;
                }
                if ranks.simulator.happens(300) {
                    // An orderly end, if it comes to it in time.
                    ranks.stop(number);
                    ranks.simulator.pause(0, 15_000).await;
                    if ranks.is_calm() {
                        break;
                    }
                }
                ranks.kill(number);
                ranks.simulator.pause(10, 2_000).await;
                if ranks.is_calm() {
                    // Whoever has called for calm starts everybody.
                    break;
                }
                ranks.start(number);
            }
        }));
    }
}
