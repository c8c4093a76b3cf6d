//! Properties of shares for any capacity and any queues.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn owner() -> impl Strategy<Value = SellerId> {
    (0..4_u128).prop_map(|n| Uuid::from_u128(n).into())
}

fn free() -> impl Strategy<Value = FreeAttempts> {
    let numbers = (0..60_u16).prop_flat_map(|of| (Just(of), 0..=of, 0..8_u16));
    (numbers, btree_set(owner(), 0..2)).prop_map(|((of, open, reserve), passed_over)| FreeAttempts {
        attempts: open + reserve,
        open,
        of,
        passed_over,
    })
}

fn load() -> impl Strategy<Value = Load> {
    let numbers = (0..12_u16).prop_flat_map(|attempts| (Just(attempts), 0..=attempts));
    let limits = (1..20_u16, option::of(0..4_u16));
    (numbers, limits).prop_map(|((attempts, failing), (window, tries))| Load {
        attempts,
        failing,
        window,
        tries,
    })
}

fn capacity() -> impl Strategy<Value = Capacity> {
    let limits = (1..12_u16, 1..4_u16, 1..20_u16, 1..20_u16);
    (free(), free(), limits, btree_map(owner(), load(), 0..8)).prop_map(
        |(all, failing, limits, under_way)| Capacity {
            all,
            failing,
            per_queue: limits.0,
            per_failing_queue: limits.1,
            first_window: limits.2,
            first_window_of_idle: limits.2 + limits.3,
            under_way,
        },
    )
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
        prop_assert!(sum(&queues, &shares, |_| true) <= capacity.all.attempts);
        prop_assert!(sum(&queues, &shares, |queue| queue.failing) <= capacity.failing.attempts);
        for (queue, share) in queues.iter().zip(&shares) {
            let most = if queue.failing { capacity.per_failing_queue } else { capacity.per_queue };
            let due = queue.first_attempts + queue.repeats;
            prop_assert!(share.unwrap_or_default() <= most.min(due));
            let load = capacity.load(queue.owner);
            prop_assert!(load.tries.is_none() || share.unwrap_or_default() <= 1);
            for (kind, has, window, only_failing) in [
                (&capacity.all, load.attempts, load.window, false),
                (&capacity.failing, load.failing, load.window.div_ceil(2), true),
            ] {
                let is_owners = |other: &DueQueue| other.owner == queue.owner;
                let given = sum(&queues, &shares, |other| is_owners(other) && (other.failing || !only_failing));
                prop_assert!(given == 0 || has + given <= window);
                prop_assert!(load.tries.is_none_or(|tries| given <= tries));
                let is_kind = |other: &DueQueue| is_owners(other) && other.failing == only_failing;
                let passed_over = kind.passed_over.contains(&queue.owner);
                prop_assert!(!passed_over || sum(&queues, &shares, is_kind) == 0);
            }
        }
    }

    /// However many attempts each could have, one owner after the other leaves something open to the next; what is not open is
    /// only for those without any.
    #[test]
    fn owners_leave_some_to_the_next(windows in vec(1..60_u16, 1..200), reserve in 0..60_u16) {
        let of = 400;
        let mut free = FreeAttempts { attempts: of + reserve, open: of, of, ..FreeAttempts::default() };
        for window in windows {
            let before = free.clone();
            let number = free.left(window, 0);
            free.take(number);
            prop_assert!(free.open > 0 || before.open <= 1, "{window}: {before:?}");
            prop_assert_eq!(number, free.attempts.abs_diff(before.attempts));
            prop_assert!(number > 0 || before.attempts == 0);
            prop_assert!(free.open > 0 || free.left(window, 1) == 0);
        }
    }

    /// A queue that gets less than it could start has met a limit, which those before it have reached.
    #[test]
    fn nothing_is_left_that_a_queue_could_start(capacity in capacity(), queues in queues()) {
        let mut left = capacity;
        for queue in &queues {
            let most = match left.load(queue.owner).tries {
                Some(_) => 1,
                None if queue.failing => left.per_failing_queue,
                None => left.per_queue,
            };
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
        let load = Load { attempts: 1, ..Load::none(1) };
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
    let tried = Load {
        tries: Some(1),
        ..Load::none(6)
    };
    let free = |attempts| FreeAttempts {
        attempts,
        open: attempts,
        of: attempts,
        passed_over: BTreeSet::new(),
    };
    let mut capacity = Capacity {
        all: free(200),
        failing: free(1),
        per_queue: 4,
        per_failing_queue: 1,
        first_window: 6,
        first_window_of_idle: 6,
        under_way: BTreeMap::from([(Uuid::from_u128(3).into(), tried)]),
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
        (queue(3, false, 9, 9), None),
    ] {
        let share = capacity
            .share(&queue)
            .map(|share| (share.attempts, share.repeats));
        assert_eq!(share, expected, "{queue:?}");
    }
}

#[test]
fn in_an_idle_process_an_owner_begins_with_more() {
    let open = |open| FreeAttempts {
        attempts: open,
        open,
        of: 80,
        passed_over: BTreeSet::new(),
    };
    for (all, expected) in [(80, 9), (70, 9), (69, 3), (20, 2), (0, 0)] {
        let capacity = Capacity {
            all: open(all),
            failing: open(all),
            per_queue: 4,
            per_failing_queue: 1,
            first_window: 3,
            first_window_of_idle: 9,
            under_way: BTreeMap::new(),
        };
        assert_eq!(capacity.left(Uuid::nil().into(), false), expected, "{all}");
    }
}
