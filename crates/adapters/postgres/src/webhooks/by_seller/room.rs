//! How the room of a claim is shared by the lanes that are due.

use std::collections::HashMap;

use uuid::Uuid;
use webhooks::Room;

use super::look::Candidate;

/// What is left of the room of a claim.
pub(super) struct Left {
    attempts: u16,
    failing_attempts: u16,
    per_lane: u16,
    per_failing_lane: u16,
    per_application: u16,
    failing_per_application: u16,
    /// What each application has, or may get by what is under way; and of it what its lanes have that fail.
    applications: HashMap<Uuid, (u16, u16)>,
}

impl Left {
    pub(super) fn of(room: &Room) -> Self {
        let under_way = room.under_way.iter();
        Self {
            attempts: room.attempts,
            failing_attempts: room.failing_attempts,
            per_lane: room.per_lane,
            per_failing_lane: room.per_failing_lane,
            per_application: room.per_application,
            failing_per_application: room.failing_per_application,
            applications: under_way
                .map(|of| (of.client_id.uuid(), (of.attempts, of.failing)))
                .collect(),
        }
    }

    /// Takes out those of the lanes, from the front, for which there is room, with the number of deliveries that each may get.
    /// That is set apart until it is known how much each has needed.
    pub(super) fn choose(&mut self, waiting: &mut Vec<Candidate>) -> Vec<(Candidate, u16)> {
        let mut chosen = Vec::new();
        waiting.retain(|lane| {
            let number = self.share(lane);
            if number > 0 {
                self.set_apart(lane, number);
                chosen.push((*lane, number));
            }
            number == 0
        });
        chosen
    }

    /// Of what was set apart for a lane so much was given.
    pub(super) fn give_back(&mut self, lane: &Candidate, number: u16, given: usize) {
        let unused = number.saturating_sub(u16::try_from(given).unwrap_or(u16::MAX));
        let (of, failing) = self.applications.entry(lane.application).or_default();
        *of = of.saturating_sub(unused);
        self.attempts = self.attempts.saturating_add(unused);
        if lane.failing {
            *failing = failing.saturating_sub(unused);
            self.failing_attempts = self.failing_attempts.saturating_add(unused);
        }
    }

    fn share(&self, lane: &Candidate) -> u16 {
        let (of, failing) = self
            .applications
            .get(&lane.application)
            .copied()
            .unwrap_or_default();
        let share = self.attempts.min(self.per_application.saturating_sub(of));
        if lane.failing {
            let failing = self.failing_per_application.saturating_sub(failing);
            share
                .min(self.per_failing_lane)
                .min(self.failing_attempts)
                .min(failing)
        } else {
            share.min(self.per_lane)
        }
    }

    fn set_apart(&mut self, lane: &Candidate, number: u16) {
        let (of, failing) = self.applications.entry(lane.application).or_default();
        *of = of.saturating_add(number);
        self.attempts = self.attempts.saturating_sub(number);
        if lane.failing {
            *failing = failing.saturating_add(number);
            self.failing_attempts = self.failing_attempts.saturating_sub(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use webhooks::UnderWay;

    use super::*;

    fn lane(application: u128, failing: bool) -> Candidate {
        Candidate {
            seller: Uuid::nil(),
            id: Uuid::nil(),
            application: Uuid::from_u128(application),
            failing,
        }
    }

    fn room() -> Room {
        Room {
            attempts: 10,
            failing_attempts: 4,
            per_lane: 4,
            per_failing_lane: 2,
            per_application: 6,
            failing_per_application: 3,
            under_way: vec![UnderWay {
                client_id: Uuid::from_u128(9).into(),
                attempts: 5,
                failing: 3,
            }],
        }
    }

    fn numbers(left: &mut Left, waiting: &mut Vec<Candidate>) -> Vec<u16> {
        left.choose(waiting)
            .into_iter()
            .map(|(_, number)| number)
            .collect()
    }

    #[test]
    fn every_part_has_its_limit() {
        let mut waiting = vec![
            lane(1, false),
            lane(1, false),
            lane(1, false),
            lane(9, true),
            lane(9, false),
            lane(2, true),
            lane(2, true),
            lane(3, true),
        ];
        assert_eq!(numbers(&mut Left::of(&room()), &mut waiting), [4, 2, 1, 2, 1]);
        assert_eq!(waiting, [lane(1, false), lane(9, true), lane(3, true)]);
    }

    #[test]
    fn what_was_not_needed_goes_to_others() {
        let mut left = Left::of(&room());
        let mut waiting = vec![lane(1, false), lane(2, true), lane(3, false), lane(4, false)];
        assert_eq!(numbers(&mut left, &mut waiting), [4, 2, 4]);
        assert!(numbers(&mut left, &mut waiting).is_empty());
        left.give_back(&lane(1, false), 4, 1);
        left.give_back(&lane(2, true), 2, 0);
        waiting.push(lane(1, false));
        assert_eq!(numbers(&mut left, &mut waiting), [4, 1]);
        assert_eq!(left.failing_attempts, 4);
    }
}
