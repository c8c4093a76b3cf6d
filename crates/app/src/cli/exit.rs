//! How a command ends: the exit codes, in one table, and which failure has which.

use std::process::ExitCode;

use adapter_postgres::MigrateError;
use kernel::StoreError;
use usecases::UnitOfWorkError;

use crate::readiness::TooOld;

/// Why a command ends without having done what was asked, where programs have to tell it from other failures.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// What was asked cannot be asked like that.
    #[error("{0}")]
    Usage(String),
    /// What it is about is not there.
    #[error("{0}")]
    NotFound(String),
    /// The schema is not what the program needs.
    #[error("{0}")]
    Schema(String),
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    Failed,
    Usage,
    NotFound,
    Unavailable,
    Unknown,
}

impl Exit {
    pub(super) const ALL: [Self; 6] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotFound,
        Self::Unavailable,
        Self::Unknown,
    ];

    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Unavailable => 4,
            Self::Unknown => 5,
        }
    }

    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => {
                "failed or refused, by a wrong configuration too; nothing was changed by a command that changes one thing"
            }
            Self::Usage => "the command line is wrong, or --yes is missing where there is nobody to ask",
            Self::NotFound => "what the command is about is not there",
            Self::Unavailable => {
                "the database cannot be reached, takes no writes, refuses the role, or does not fit this program"
            }
            Self::Unknown => {
                "the database was lost at the very end: look whether it was done before repeating it"
            }
        }
    }

    /// How a command ends that failed so.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_one).unwrap_or(Self::Failed)
    }

    fn of_one(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(stopped) = error.downcast_ref::<Stopped>() {
            return Some(match stopped {
                Stopped::Usage(_) => Self::Usage,
                Stopped::NotFound(_) => Self::NotFound,
                Stopped::Schema(_) => Self::Unavailable,
            });
        }
        if error.is::<TooOld>()
            || matches!(
                error.downcast_ref::<MigrateError>(),
                Some(MigrateError::Unreachable(_) | MigrateError::Forbidden(_))
            )
        {
            return Some(Self::Unavailable);
        }
        let store = match error.downcast_ref::<UnitOfWorkError>() {
            Some(UnitOfWorkError::Unknown(_)) => return Some(Self::Unknown),
            Some(UnitOfWorkError::Store(store)) => Some(store),
            None => error.downcast_ref::<StoreError>(),
        };
        matches!(store, Some(StoreError::Unavailable(_))).then_some(Self::Unavailable)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The table as the help shows it.
pub(super) fn table() -> String {
    let codes = Exit::ALL.map(|exit| format!("  {:<3}  {}\n", exit.code(), exit.meaning()));
    format!(
        "Exit codes:\n{}  128 and more: ended by the signal of that number less 128, such as 130 by Ctrl-C",
        codes.concat()
    )
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn failures_are_told_apart_whatever_was_said_about_them() {
        let away = || StoreError::Unavailable("gone".into());
        for (error, exit) in [
            (anyhow::anyhow!("no"), Exit::Failed),
            (Stopped::Usage("x".into()).into(), Exit::Usage),
            (Stopped::NotFound("x".into()).into(), Exit::NotFound),
            (Stopped::Schema("x".into()).into(), Exit::Unavailable),
            (away().into(), Exit::Unavailable),
            (UnitOfWorkError::Store(away()).into(), Exit::Unavailable),
            (UnitOfWorkError::Unknown(away()).into(), Exit::Unknown),
            (MigrateError::Unreachable("x".into()).into(), Exit::Unavailable),
            (MigrateError::Forbidden("x".into()).into(), Exit::Unavailable),
        ] {
            let error = Err::<(), anyhow::Error>(error).context("cannot").unwrap_err();
            assert_eq!(Exit::of(&error), exit, "{error:?}");
        }
    }

    #[test]
    fn each_code_has_one_meaning() {
        let codes = Exit::ALL.map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3, 4, 5]);
        assert!(Exit::ALL.iter().all(|exit| table().contains(exit.meaning())));
    }
}
