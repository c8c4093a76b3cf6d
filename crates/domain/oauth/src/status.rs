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
pub struct ImpossibleTransition {
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
    pub const fn accept(self) -> Result<Self, ImpossibleTransition> {
        match self {
            Self::Pending | Self::Active => Ok(Self::Active),
            Self::Suspended => Err(ImpossibleTransition {
                status: self,
                command: "accepted",
            }),
        }
    }

    /// Suspends the application. No effect on a suspended one.
    pub const fn suspend(self) -> Result<Self, ImpossibleTransition> {
        match self {
            Self::Active | Self::Suspended => Ok(Self::Suspended),
            Self::Pending => Err(ImpossibleTransition {
                status: self,
                command: "suspended",
            }),
        }
    }

    /// Reinstates the application. No effect on an active one.
    pub const fn reinstate(self) -> Result<Self, ImpossibleTransition> {
        match self {
            Self::Suspended | Self::Active => Ok(Self::Active),
            Self::Pending => Err(ImpossibleTransition {
                status: self,
                command: "reinstated",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ApplicationStatus as S;

    #[test]
    fn the_table_of_transitions() {
        let (active, suspended) = (Some(S::Active), Some(S::Suspended));
        for (status, expected) in [
            (S::Pending, [active, None, None]),
            (S::Active, [active, suspended, active]),
            (S::Suspended, [None, suspended, active]),
        ] {
            let results = [status.accept(), status.suspend(), status.reinstate()];
            assert_eq!(results.map(Result::ok), expected);
        }
        let refused = S::Suspended.accept().unwrap_err().to_string();
        assert_eq!(refused, "the application is suspended: it cannot be accepted");
    }

    #[test]
    fn statuses_have_the_contracts_names() {
        let words = ["pending", "active", "suspended"];
        assert_eq!(S::ALL.map(S::as_str), words);
        assert_eq!(words.map(S::parse), S::ALL.map(Some));
        assert_eq!(S::parse("Active"), None);
    }
}
