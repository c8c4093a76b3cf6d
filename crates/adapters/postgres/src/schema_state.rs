//! Whether this program can work with the database's schema.

use std::error::Error;
use std::sync::atomic::Ordering;

use diesel::sql_types::{Array, Bool, Nullable, Text};
use kernel::StoreError;

use crate::connection::error::is_permission_denied;
use crate::database::Database;
use crate::layout::Layout;
use crate::migrations::embedded_versions;
use crate::statement::{Only, statements};

statements! {
    "schema_state.sql";
    FACTS: () -> Facts;
    APPLIED: () -> Applied;
    GRANTS: (Array<Text>) -> Only<Nullable<Text>, Option<String>>;
}

/// Whether this program can work with the database's schema; displayed as why not, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaState {
    #[error("ready")]
    Ready,
    #[error(
        "the pooler in front of the database drops prepared statements: set `max_prepared_statements` (1000, say) in PgBouncer 1.21 or \
         newer, or let it pool sessions"
    )]
    PreparedStatementsLost,
    #[error(
        "the database takes no writes, as a standby does: let its URL lead to the primary, or name all hosts in it with \
         `target_session_attrs=read-write`; or default_transaction_read_only is on for the role, the database or the server: reset that"
    )]
    ReadOnly,
    #[error(
        "the database has the encoding {encoding} and not UTF8, so that it cannot hold every name: create one with TEMPLATE template0 \
         ENCODING 'UTF8'"
    )]
    NotUnicode { encoding: String },
    #[error(
        "the server's messages are in {locale:?} and have to be in English, since some failures are distinguished by them: set \
         lc_messages to 'C' for the role (ALTER ROLE … SET lc_messages = 'C'), then restart this process and any pooler"
    )]
    NotEnglish { locale: String },
    #[error(
        "single statements are {isolation}, which fails where others change the same rows: set the role's isolation level (ALTER ROLE … SET \
         default_transaction_isolation = 'read committed'), then restart this process and any pooler"
    )]
    NotReadCommitted { isolation: String },
    #[error(
        "the role lacks rights in the database. As the tables' owner (ALTER ROLE: as the role itself, then restart) run: {statements}"
    )]
    Forbidden { statements: String },
    #[error(
        "the database has no tables of this service yet, or none on the search_path: run `seller-api migrate`"
    )]
    Missing,
    #[error("the database lacks {pending} migration{}: run `seller-api migrate`", if *pending == 1 { "" } else { "s" })]
    Behind { pending: usize },
    #[error("{}", match found {
        Layout::Citus => "the database's tables are distributed: set `database.layout` to citus",
        Layout::Single => "`database.layout` is citus, and the database's tables are not distributed: run `seller-api migrate --distribute`",
    })]
    OtherLayout { found: Layout },
    #[error(
        "the database's schema needs seller-api {oldest} or newer, and this is {}: deploy the newer version",
        env!("CARGO_PKG_VERSION")
    )]
    NeedsNewerBinary { oldest: String },
}

#[derive(diesel::QueryableByName)]
struct Facts {
    #[diesel(sql_type = Bool)]
    takes_writes: bool,
    #[diesel(sql_type = Text)]
    encoding: String,
    #[diesel(sql_type = Text)]
    locale: String,
    #[diesel(sql_type = Text)]
    isolation: String,
    #[diesel(sql_type = Bool)]
    is_there: bool,
    #[diesel(sql_type = Bool)]
    is_distributed: bool,
}

/// An applied migration, and the oldest version of the program that it supports.
#[derive(diesel::QueryableByName)]
struct Applied {
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Nullable<Text>)]
    oldest_binary: Option<String>,
}

impl Database {
    /// Whether this program can work with the schema. Fails while the database is unreachable, so it also
    /// serves as a probe. The first call also checks whether a pooler in between supports prepared
    /// statements, and so does the next one after it has lost one.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        let connector = self.connector();
        if !connector.keeps_statements().await? {
            return Ok(SchemaState::PreparedStatementsLost);
        }
        let statements = self.autocommit("schema").of_any_database();
        let facts = statements.row(FACTS.bare()).await;
        if connector.loses_statements.load(Ordering::Relaxed) {
            return Ok(SchemaState::PreparedStatementsLost);
        }
        let facts =
            facts?.ok_or_else(|| StoreError::unexpected("the server returned no row about itself"))?;
        if !facts.takes_writes {
            // New connections may lead to the primary, or see that a setting of the role has changed.
            self.units.connections.pool.retain(|_, _| false);
            return Ok(SchemaState::ReadOnly);
        }
        if facts.encoding != "UTF8" {
            let encoding = facts.encoding;
            return Ok(SchemaState::NotUnicode { encoding });
        }
        if !is_english(&facts.locale) {
            let locale = facts.locale;
            return Ok(SchemaState::NotEnglish { locale });
        }
        if !facts.isolation.starts_with("read ") {
            let isolation = facts.isolation;
            return Ok(SchemaState::NotReadCommitted { isolation });
        }
        if !facts.is_there {
            return Ok(SchemaState::Missing);
        }
        let applied = match statements.rows(APPLIED.bare()).await {
            Err(error) if is_permission_denied(&error) => {
                let statements = self.missing_grants().await?.unwrap_or_default();
                return Ok(SchemaState::Forbidden { statements });
            }
            applied => applied?,
        };
        let state = compare_versions(&embedded_versions(), &applied, env!("CARGO_PKG_VERSION"));
        let found = if facts.is_distributed {
            Layout::Citus
        } else {
            Layout::Single
        };
        if state == SchemaState::Ready && found != self.units.layout {
            return Ok(SchemaState::OtherLayout { found });
        }
        Ok(state)
    }

    /// Why a statement failed, if the role lacks a right.
    pub async fn lacking_rights(
        &self,
        error: &(dyn Error + 'static),
    ) -> Result<Option<SchemaState>, StoreError> {
        if !is_permission_denied(error) {
            return Ok(None);
        }
        let statements = self.missing_grants().await?;
        Ok(statements.map(|statements| SchemaState::Forbidden { statements }))
    }

    /// The statements by which the tables' owner gives the role the rights that it lacks; none if it has all. A table
    /// with row security and no policy for the role counts: it seems empty.
    pub async fn missing_grants(&self) -> Result<Option<String>, StoreError> {
        let tables = include_str!("schema.rs").split("diesel::table! {").skip(1);
        let tables = tables.filter_map(|table| table.split_whitespace().next());
        let tables: Vec<_> = tables
            // Named in SQL files alone.
            .chain(["last_uses", "personal_tokens", "schema_facts"])
            .chain(["subscription_quota", "subscription_queues"])
            .chain(["distributed_writes", "__diesel_schema_migrations"])
            .collect();
        let statements = self.autocommit("schema").of_any_database();
        let grants = statements.row(GRANTS.bind((tables,))).await?;
        Ok(grants.and_then(|statements| statements.0))
    }
}

/// Compares the program's migrations and version with the applied migrations and the oldest program version
/// that each supports. A program can work with the migrations that it embeds, whatever its version: one that
/// is not released yet has that of the previous release.
fn compare_versions(embedded: &[String], applied: &[Applied], own: &str) -> SchemaState {
    let unknown = applied
        .iter()
        .filter(|applied| !embedded.contains(&applied.version));
    let needed = unknown.filter_map(|applied| applied.oldest_binary.as_deref());
    let needed = needed.max_by_key(|oldest| version(oldest));
    if let Some(oldest) = needed.filter(|oldest| version(oldest) > version(own)) {
        return SchemaState::NeedsNewerBinary {
            oldest: oldest.to_owned(),
        };
    }
    let pending = embedded
        .iter()
        .filter(|version| !applied.iter().any(|done| done.version == **version))
        .count();
    match pending {
        0 => SchemaState::Ready,
        all if all == embedded.len() => SchemaState::Missing,
        pending => SchemaState::Behind { pending },
    }
}

/// Whether a locale's messages are in English. An empty locale means that of the server's environment, which
/// is unknown here.
fn is_english(locale: &str) -> bool {
    let language = locale.split(['.', '_', '@', '-']).next().unwrap_or_default();
    ["", "c", "posix", "en", "english"].contains(&language.to_ascii_lowercase().as_str())
}

/// The three numbers of a version. A part that is not a number counts as the highest, so that an old program
/// is rejected in doubt.
fn version(text: &str) -> Vec<u64> {
    text.split('.')
        .map(|number| number.parse().unwrap_or(u64::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_of(embedded: &[&str], applied: &[(&str, &str)], own: &str) -> SchemaState {
        let embedded = embedded.iter().map(ToString::to_string).collect::<Vec<_>>();
        let fact = |(version, oldest): &(&str, &str)| Applied {
            version: (*version).to_owned(),
            oldest_binary: Some((*oldest).to_owned()),
        };
        compare_versions(&embedded, &applied.iter().map(fact).collect::<Vec<_>>(), own)
    }

    #[test]
    fn locales_with_english_messages_are_known() {
        for locale in [
            "",
            "C",
            "POSIX",
            "C.UTF-8",
            "en_US.UTF-8",
            "en_GB@euro",
            "en",
            "English_United States.1252",
        ] {
            assert!(is_english(locale), "{locale}");
        }
        for locale in ["pl_PL.UTF-8", "de_DE", "ca_ES", "cs", "Polish_Poland.1250"] {
            assert!(!is_english(locale), "{locale}");
        }
    }

    #[test]
    fn a_newer_schema_is_accepted_down_to_its_oldest_program() {
        let newer = [("1", "0.1.0"), ("2", "0.9.0")];
        assert_eq!(state_of(&["1"], &newer, "0.10.0"), SchemaState::Ready);
        assert_eq!(state_of(&["1"], &newer, "0.9.0"), SchemaState::Ready);
        let needed = SchemaState::NeedsNewerBinary {
            oldest: "0.9.0".to_owned(),
        };
        assert_eq!(state_of(&["1"], &newer, "0.8.12"), needed);
        // The release that added the migration is not numbered yet.
        assert_eq!(state_of(&["1", "2"], &newer, "0.8.12"), SchemaState::Ready);
    }
}
