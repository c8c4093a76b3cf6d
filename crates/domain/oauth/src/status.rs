//! The status of an application and the operator's transitions.

use crate::ScopeSet;

kernel::words! {
    /// The status of an application (contract: Application status).
    pub enum ApplicationStatus {
        /// Awaits acceptance: works only for its owner's account.
        Pending = "pending",
        Active = "active",
        /// No tokens are issued to it, and existing ones are rejected.
        Suspended = "suspended",
    }
}

kernel::words! {
    /// An operator's transition of the status, with its participle.
    pub enum Transition {
        /// Pending becomes active.
        Accept = "accepted",
        /// Active becomes suspended: its tokens are rejected from the commit on.
        Suspend = "suspended",
        /// Suspended becomes active: unexpired tokens work again.
        Reinstate = "reinstated",
    }
}

/// Why an operator's transition is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransitionRefusal {
    /// The status does not allow the transition.
    #[error("the application is {}: it cannot be {}", .0.as_str(), .1.as_str())]
    Impossible(ApplicationStatus, Transition),
    /// The operator accepts other scopes than those requested; holds the current request.
    #[error("the application requests different scopes: {}", if .0.is_empty() { "none".to_owned() } else { .0.to_string() })]
    Request(ScopeSet),
}

impl ApplicationStatus {
    /// The status after a transition. One to the current status is allowed and changes nothing.
    pub const fn after(self, transition: Transition) -> Result<Self, TransitionRefusal> {
        match (transition, self) {
            (Transition::Accept, Self::Pending | Self::Active)
            | (Transition::Reinstate, Self::Suspended | Self::Active) => Ok(Self::Active),
            (Transition::Suspend, Self::Active | Self::Suspended) => Ok(Self::Suspended),
            (Transition::Accept, Self::Suspended)
            | (Transition::Suspend | Transition::Reinstate, Self::Pending) => {
                Err(TransitionRefusal::Impossible(self, transition))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ApplicationStatus as S,
        Transition::{Accept, Reinstate, Suspend},
    };

    #[test]
    fn the_table_of_transitions() {
        let (active, suspended) = (Some(S::Active), Some(S::Suspended));
        for (status, expected) in [
            (S::Pending, [active, None, None]),
            (S::Active, [active, suspended, active]),
            (S::Suspended, [None, suspended, active]),
        ] {
            let results = [Accept, Suspend, Reinstate].map(|transition| status.after(transition).ok());
            assert_eq!(results, expected);
        }
        let refused = S::Suspended.after(Accept).unwrap_err().to_string();
        assert_eq!(refused, "the application is suspended: it cannot be accepted");
    }
}
