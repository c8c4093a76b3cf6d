//! Types shared by the whole domain: ids, money, pages, changes, idempotency keys, queued mails; and ports
//! that every part of it needs.
//!
//! Pure: nothing here accesses a database, a socket or the system clock.

mod address;
mod idempotency;
mod ids;
mod invalid;
mod mail;
mod money;
mod page;
mod ports;
mod store_error;

pub use address::*;
pub use idempotency::*;
pub use ids::*;
pub use invalid::*;
pub use mail::*;
pub use money::*;
pub use page::*;
pub use ports::*;
pub use store_error::*;

/// The target of `tracing` spans, which are exported as traces and not logged.
pub const SPANS: &str = "spans";

/// A secret that `Debug` does not print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Redacted<T>(pub T);

impl<T> std::fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// What saving a change requires of the stored row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// There is no row: the change creates it.
    MustNotExist,
    /// The row is as it was read: either locked by the transaction that saves the change, or compared by the
    /// store.
    Unchanged,
}

/// The result of a transition: the new state with its events. They are one value, so that neither can be
/// saved without the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<A, E> {
    pub precondition: Precondition,
    pub after: A,
    /// The events in order; empty if the change needs no announcement.
    pub events: Vec<E>,
}

impl<A, E> Change<A, E> {
    /// A change that creates something.
    pub fn created(after: A, events: Vec<E>) -> Self {
        Self {
            precondition: Precondition::MustNotExist,
            after,
            events,
        }
    }

    /// A change of something that exists.
    pub fn of_existing(after: A, events: Vec<E>) -> Self {
        Self {
            precondition: Precondition::Unchanged,
            after,
            events,
        }
    }

    /// The same change with each event mapped.
    pub fn map_events<F>(self, map: impl FnMut(E) -> F) -> Change<A, F> {
        Change {
            precondition: self.precondition,
            after: self.after,
            events: self.events.into_iter().map(map).collect(),
        }
    }
}

/// Defines an enum whose variants have words in rows, forms, paths and the contract. The words are unique.
#[macro_export]
macro_rules! words {
    ($(#[$of_enum:meta])* $vis:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        impl $name {
            /// All, in the order of the table.
            $vis const ALL: [Self; [$($word,)*].len()] = [$(Self::$variant,)*];

            /// The word.
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The one with this word.
            $vis fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }
    };
}
