//! The status of an application and the operator's transitions.

/// The status of an application (contract: Application status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplicationStatus {
    /// Awaits acceptance: works only for its owner's account.
    Pending,
    Active,
    /// No tokens are issued to it, and existing ones are rejected.
    Suspended,
}

/// A transition that the current status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the application is {}: it cannot be {command}", .status.as_str())]
pub struct ImpossibleMove {
    /// The current status.
    pub status: ApplicationStatus,
    /// The refused command, as a participle ("accepted").
    pub command: &'static str,
}

impl ApplicationStatus {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Suspended];

    /// The contract's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Suspended => "suspended",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Accepts the application. No effect on an active one.
    pub const fn accept(self) -> Result<Self, ImpossibleMove> {
        match self {
            Self::Pending | Self::Active => Ok(Self::Active),
            Self::Suspended => Err(ImpossibleMove {
                status: self,
                command: "accepted",
            }),
        }
    }

    /// Suspends the application. No effect on a suspended one.
    pub const fn suspend(self) -> Result<Self, ImpossibleMove> {
        match self {
            Self::Active | Self::Suspended => Ok(Self::Suspended),
            Self::Pending => Err(ImpossibleMove {
                status: self,
                command: "suspended",
            }),
        }
    }

    /// Reinstates the application. No effect on an active one.
    pub const fn reinstate(self) -> Result<Self, ImpossibleMove> {
        match self {
            Self::Suspended | Self::Active => Ok(Self::Active),
            Self::Pending => Err(ImpossibleMove {
                status: self,
                command: "reinstated",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ApplicationStatus as S, *};

    #[test]
    fn the_table_of_moves() {
        assert_eq!(S::Pending.accept(), Ok(S::Active));
        assert_eq!(S::Active.accept(), Ok(S::Active));
        assert_eq!(S::Active.suspend(), Ok(S::Suspended));
        assert_eq!(S::Suspended.suspend(), Ok(S::Suspended));
        assert_eq!(S::Suspended.reinstate(), Ok(S::Active));
        assert_eq!(S::Active.reinstate(), Ok(S::Active));
        let refused = S::Suspended.accept().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the application is suspended: it cannot be accepted"
        );
        assert!(S::Pending.suspend().is_err() && S::Pending.reinstate().is_err());
    }

    #[test]
    fn statuses_have_the_contracts_names() {
        let words = ["pending", "active", "suspended"];
        assert_eq!(S::ALL.map(S::as_str), words);
        assert_eq!(words.map(S::parse), S::ALL.map(Some));
        assert_eq!(S::parse("Active"), None);
    }

    type Command = fn(S) -> Result<S, ImpossibleMove>;

    fn commands() -> impl Strategy<Value = Command> {
        let commands: Vec<Command> = vec![S::accept, S::suspend, S::reinstate];
        prop::sample::select(commands)
    }

    proptest! {
        #[test]
        fn nothing_becomes_pending_again_and_repeating_is_harmless(moves in prop::collection::vec(commands(), 1..30)) {
            let mut status = S::Pending;
            for command in moves {
                let Ok(next) = command(status) else { continue };
                prop_assert_ne!(next, S::Pending);
                prop_assert_eq!(command(next), Ok(next));
                status = next;
            }
        }
    }
}
