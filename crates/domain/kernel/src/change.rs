//! A change and what it announces, as one value.

/// The state a change was computed from. A store saves the change only over exactly that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// There was nothing: the change makes the thing.
    Absent,
    /// The thing was read, and its row locked, in the transaction that saves the change.
    Locked,
}

/// What a transition returns: the new state with its events. They travel as one value, so that neither can be saved
/// without the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<A, E> {
    /// What the change was computed from.
    pub before: Version,
    /// The new state.
    pub after: A,
    /// What happened, in order; empty when nobody needs to hear of it.
    pub events: Vec<E>,
}

impl<A, E> Change<A, E> {
    /// A new thing.
    pub fn made(after: A, events: Vec<E>) -> Self {
        Self {
            before: Version::Absent,
            after,
            events,
        }
    }

    /// A thing that was there before.
    pub fn of_existing(after: A, events: Vec<E>) -> Self {
        Self {
            before: Version::Locked,
            after,
            events,
        }
    }
}
