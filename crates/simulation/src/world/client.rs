//! A client that keeps to the contract: it sends a request with a key, and sends it again until it is told how it ended.

use chrono::TimeDelta;

use super::{
    deed::Deed,
    fleet::Fleet,
    history::{Reply, Story},
    process::IN_PROGRESS,
};
use crate::Met;

/// How often a request is sent at most.
const TRIES: usize = 60;

/// Whoever asks for something. Clones ask the same fleet.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) fleet: Fleet,
}

impl Client {
    /// Has something done under a key of this name, and returns the answer; nothing where there was none to be had.
    pub(crate) async fn ask(&self, name: &str, deed: Deed) -> Option<Reply> {
        let simulator = &self.fleet.simulator;
        self.story(name, |story| story.deed = Some(deed.clone()));
        for _ in 0..TRIES {
            if let Some(reply) = self.send(name, &deed).await {
                self.story(name, |story| story.told = Some(reply.clone()));
                if simulator.happens(200) {
                    simulator.count(Met::SentAfterAnswer);
                    // It was not heard of by all of the client, which asks once more.
                    drop(self.send(name, &deed).await);
                }
                return Some(reply);
            }
            simulator.pause(50, 3_000).await;
        }
        None
    }

    fn story(&self, name: &str, note: impl FnOnce(&mut Story)) {
        note(
            self.fleet
                .history
                .seen()
                .stories
                .entry(name.to_owned())
                .or_default(),
        );
    }

    /// Sends it, at times twice at once; nothing where the answer says to try again, or is lost on its way.
    async fn send(&self, name: &str, deed: &Deed) -> Option<Reply> {
        let simulator = &self.fleet.simulator;
        if simulator.happens(100) {
            // Nobody waits for this one's answer.
            if self.fleet.handle(name, deed.clone()).is_some() {
                simulator.count(Met::SentTwice);
            }
        }
        let handle = self.fleet.handle(name, deed.clone())?;
        let patience = TimeDelta::milliseconds(simulator.draw(|chance| chance.i64(200..8_000)));
        let Some(ended) = simulator.within(patience, handle.ended()).await else {
            simulator.count(Met::ClientImpatient);
            return None;
        };
        let reply = ended?;
        let is_final = reply.status < 500 && reply.status != IN_PROGRESS;
        let arrives = self.fleet.ranks.is_calm() || !simulator.happens(60);
        if !arrives {
            simulator.count(Met::AnswerLost);
        }
        (is_final && arrives).then_some(reply)
    }
}
