//! Receivers of webhooks: some answer, some do when they feel like it, some never.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use webhooks::{Attempted, Failure, Message, Outcome, Sent, WebhookSender};

use super::history::{History, Received};
use crate::{Met, Simulator, Weather};

/// How a receiver behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes everything soon.
    Sound,
    /// It takes half of it, and lets the rest wait or fail.
    Moody,
    /// It takes nothing.
    Dead,
}

/// Every receiver, by its address.
#[derive(Debug, Clone)]
pub(crate) struct Receivers {
    pub(crate) simulator: Simulator,
    pub(crate) history: History,
    pub(crate) weather: Weather,
    pub(crate) manners: BTreeMap<String, Manner>,
}

#[async_trait]
impl WebhookSender for Receivers {
    async fn send(&self, message: &Message) -> Sent {
        let simulator = &self.simulator;
        if simulator.happens(self.weather.per_mille()) {
            simulator.count(Met::SendingPostponed);
            return Sent::Postponed;
        }
        let place = {
            let mut seen = self.history.seen();
            simulator.count(Met::Attempted);
            let taken = |one: &Received| one.answered.is_some_and(|status| status < 300);
            let mut before = seen.received.iter();
            if before.any(|one| one.message.delivery == message.delivery && taken(one)) {
                simulator.count(Met::ArrivedAgain);
            }
            seen.received.push(Received {
                message: message.clone(),
                at: simulator.now(),
                ended_at: None,
                answered: None,
            });
            seen.received.len() - 1
        };
        let began = simulator.now();
        let manner = self
            .manners
            .get(message.url.as_str())
            .copied()
            .unwrap_or(Manner::Sound);
        let takes = match manner {
            Manner::Sound => true,
            Manner::Moody => simulator.happens(500),
            Manner::Dead => false,
        };
        let outcome = if takes {
            simulator.pause(1, 400).await;
            Outcome::Answered(simulator.draw(|chance| *chance.choice(&[200, 202, 204]).unwrap_or(&200)))
        } else {
            match simulator.draw(|chance| chance.u8(..3)) {
                0 => {
                    simulator.pause(9_000, 10_000).await;
                    simulator.count(Met::ReceiverTimedOut);
                    Outcome::Failed(Failure::TimedOut)
                }
                1 => {
                    simulator.count(Met::ReceiverRefused);
                    Outcome::Failed(Failure::Refused)
                }
                _ => {
                    simulator.pause(1, 400).await;
                    simulator.count(Met::ReceiverFailed);
                    Outcome::Answered(500)
                }
            }
        };
        let attempted = Attempted {
            duration: (simulator.now() - began).to_std().unwrap_or(Duration::ZERO),
            outcome,
        };
        if let Some(received) = self.history.seen().received.get_mut(place) {
            received.ended_at = Some(simulator.now());
            received.answered = attempted.response_status();
        }
        self.history.note(simulator.now(), || {
            format!(
                "{} {} answered {:?}",
                message.event.as_str(),
                message.delivery,
                attempted.outcome
            )
        });
        Sent::Attempted(attempted)
    }
}
