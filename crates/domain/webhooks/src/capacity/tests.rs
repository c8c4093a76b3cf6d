//! Properties of shares for any capacity and any queues.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn owner() -> impl Strategy<Value = SellerId> {
    (0..4_u128).prop_map(|n| Uuid::from_u128(n).into())
}

fn capacity() -> impl Strategy<Value = Capacity> {
    let load = (0..12_u16).prop_flat_map(|attempts| {
        (0..=attempts).prop_map(move |failing| Load {
            attempts,
            failing,
            one_each: false,
        })
    });
    let limits = (1..60_u16, 0..30_u16, 1..12_u16, 1..4_u16, 1..20_u16, 1..10_u16);
    let owners = (btree_map(owner(), load, 0..8), btree_set(owner(), 0..2));
    (limits, owners).prop_map(|(limits, (under_way, passed_over))| Capacity {
        attempts: limits.0,
        failing_attempts: limits.1,
        per_queue: limits.2,
        per_failing_queue: limits.3,
        per_owner: limits.4,
        failing_per_owner: limits.5,
        under_way,
        passed_over,
    })
}

fn queues() -> impl Strategy<Value = Vec<DueQueue>> {
    let queue = (owner(), any::<bool>(), 0..16_u16, 0..16_u16);
    let queue = queue.prop_map(|(owner, failing, first_attempts, repeats)| DueQueue {
        owner,
        failing,
        first_attempts,
        repeats,
    });
    vec(queue, 0..30)
}

/// The attempts that each queue gets, if any.
fn shared(capacity: &Capacity, queues: &[DueQueue]) -> Vec<Option<u16>> {
    let mut capacity = capacity.clone();
    let shares = queues.iter().map(|queue| capacity.share(queue));
    shares.map(|share| share.map(|share| share.attempts)).collect()
}

/// The attempts of the queues that this selects.
fn sum(queues: &[DueQueue], shares: &[Option<u16>], which: impl Fn(&DueQueue) -> bool) -> u16 {
    let selected = queues.iter().zip(shares).filter(|(queue, _)| which(queue));
    selected.map(|(_, share)| share.unwrap_or_default()).sum()
}

proptest! {
    #[test]
    fn no_limit_is_exceeded(capacity in capacity(), queues in queues()) {
        let shares = shared(&capacity, &queues);
        prop_assert!(sum(&queues, &shares, |_| true) <= capacity.attempts);
        prop_assert!(sum(&queues, &shares, |queue| queue.failing) <= capacity.failing_attempts);
        for (queue, share) in queues.iter().zip(&shares) {
            let most = if queue.failing { capacity.per_failing_queue } else { capacity.per_queue };
            let due = queue.first_attempts + queue.repeats;
            prop_assert!(share.unwrap_or_default() <= most.min(due));
            let load = capacity.under_way.get(&queue.owner).copied().unwrap_or_default();
            let is_owners = |other: &DueQueue| other.owner == queue.owner;
            let given = sum(&queues, &shares, is_owners);
            prop_assert!(given == 0 || !capacity.passed_over.contains(&queue.owner));
            prop_assert!(given == 0 || load.attempts + given <= capacity.per_owner);
            let given = sum(&queues, &shares, |other| other.failing && is_owners(other));
            prop_assert!(given == 0 || load.failing + given <= capacity.failing_per_owner);
        }
    }

    /// A queue that gets less than it could start has met a limit, which those before it have reached.
    #[test]
    fn nothing_is_left_that_a_queue_could_start(capacity in capacity(), queues in queues()) {
        let mut left = capacity;
        for queue in &queues {
            let most = if queue.failing { left.per_failing_queue } else { left.per_queue };
            let repeats = queue.repeats.min(most.saturating_sub(1).max(1));
            let could = most.min(queue.first_attempts + repeats);
            let share = left.share(queue);
            prop_assert!(share.is_some() || could > 0);
            if share.map_or(0, |share| share.attempts) < could {
                prop_assert_eq!(left.left(queue.owner, queue.failing), 0);
            }
        }
    }

    /// Queues of an owner who has used up the share change nothing for the others.
    #[test]
    fn a_full_owner_takes_nothing(mut capacity in capacity(), queues in queues(), full in owner()) {
        let load = Load { attempts: capacity.per_owner, ..Load::default() };
        capacity.under_way.insert(full, load);
        let is_other = |queue: &DueQueue| queue.owner != full;
        let others: Vec<_> = queues.iter().filter(|queue| is_other(queue)).copied().collect();
        let shares = shared(&capacity, &queues).into_iter().zip(&queues);
        let of_others = shares.filter(|(_, queue)| is_other(queue)).map(|(share, _)| share);
        let of_others: Vec<_> = of_others.collect();
        prop_assert_eq!(of_others, shared(&capacity, &others));
    }
}

#[test]
fn one_place_is_left_to_a_first_attempt_and_a_queue_without_work_is_leased() {
    let one_each = Load {
        one_each: true,
        ..Load::default()
    };
    let mut capacity = Capacity {
        attempts: 20,
        failing_attempts: 1,
        per_queue: 4,
        per_failing_queue: 1,
        per_owner: 6,
        failing_per_owner: 6,
        under_way: BTreeMap::from([(Uuid::from_u128(3).into(), one_each)]),
        passed_over: BTreeSet::new(),
    };
    let queue = |owner: u128, failing, first_attempts, repeats| DueQueue {
        owner: Uuid::from_u128(owner).into(),
        failing,
        first_attempts,
        repeats,
    };
    for (queue, expected) in [
        (queue(1, false, 0, 9), Some((3, 3))),
        (queue(1, false, 9, 9), Some((3, 3))),
        (queue(1, false, 0, 0), Some((0, 3))),
        (queue(1, false, 1, 0), None),
        (queue(2, true, 0, 9), Some((1, 1))),
        (queue(2, true, 1, 0), None),
        (queue(2, false, 2, 9), Some((4, 3))),
        (queue(3, false, 9, 9), Some((1, 1))),
    ] {
        let share = capacity
            .share(&queue)
            .map(|share| (share.attempts, share.repeats));
        assert_eq!(share, expected, "{queue:?}");
    }
}
