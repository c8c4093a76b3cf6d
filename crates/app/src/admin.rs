//! `seller-api admin`: operator commands that work on the database directly, without a running `serve`.

mod adoption;
mod keys;
pub(crate) mod listing;
mod mails;
mod orders;
mod tokens;
mod webhooks;

use std::env;

use accounts::{AuditEntry, AuditFilter, NewOperatorToken, OperatorTokenRecord, Seller, token_name};
use adapter_postgres::Database;
use adapter_sealing::SystemRandomness;
use anyhow::bail;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Subcommand;
use futures_util::future::BoxFuture;
use kernel::error_chain;
use oauth::{Application, ClientId, ConnectedApplication, Scope};
use serde_json::{Value, json};
use usecases::operator_tokens::{create_operator_token, revoke_operator_token};
use usecases::{LockSet, Retryable, Transaction, transact};
use uuid::Uuid;

use self::listing::{Format, Listed, MAX_PAGE, PageArgs, Timestamp};
use crate::command::{Exit, ExitError, block_on, load_for_command, note};
use crate::config::{Config, Period, Sources};
use crate::readiness::{not_adopted, require_schema};
use crate::wiring;

/// The longest name of an operating system's user in the audit log.
const MAX_OS_USER: usize = 100;
/// A token's longest lifetime; the `retention` keys have the same bound.
const MAX_LIFETIME: TimeDelta = TimeDelta::days(36_600);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    format: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tokens of applications and sellers
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Applications that sellers have connected
    #[command(subcommand)]
    Connections(Connections),
    /// Subscriptions, and deliveries that have not arrived
    #[command(subcommand)]
    Webhooks(webhooks::Command),
    /// Mails to buyers that were given up
    #[command(subcommand)]
    Mails(mails::Command),
    /// Orders of a buyer
    #[command(subcommand)]
    Orders(orders::Command),
    /// Tokens for the back office
    #[command(subcommand)]
    OperatorTokens(OperatorTokens),
    /// The log of what sellers and operators did
    #[command(subcommand)]
    Audit(Audit),
    /// Keys that seal stored values
    #[command(subcommand)]
    Keys(keys::Command),
    /// Accept a database whose rows were written in another one
    ///
    /// After a dump was restored, or the database cloned, copied or upgraded, no process is ready. Stop the
    /// service on the other database, then run this once: processes that wait become ready. Webhooks and
    /// mails that wait in the database are sent from then on.
    AdoptDatabase(adoption::Command),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorTokens {
    /// Create a token
    ///
    /// Prints the token on stdout, once; only its hash is kept. Its id goes to stderr.
    Create {
        #[command(flatten)]
        name: Name,
        /// For how long it can be used, such as 90d [default: for ever]
        #[arg(long, value_name = "DURATION", value_parser = lifetime)]
        expires_in: Option<TimeDelta>,
        /// Only for reading: changes are refused
        #[arg(long)]
        read_only: bool,
    },
    /// List all tokens, oldest first
    List,
    /// Revoke a token, from the next request on
    Revoke {
        /// The token's id, as `list` shows it
        #[arg(value_parser = id)]
        id: Uuid,
    },
}

/// A name, with or without its flag.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Name {
    /// 1 to 100 characters, to recognise the token by
    #[arg(value_name = "NAME")]
    positional: Option<String>,
    /// The same as a flag
    #[arg(long = "name", value_name = "NAME")]
    flag: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Connections {
    /// List a seller's connected applications, by name
    ///
    /// Until the seller disconnects them or they are deleted, also without a usable token. `seller-api admin tokens
    /// revoke` ends the tokens; deliveries go on until then, or until the application is suspended.
    List {
        /// The seller's id, number or e-mail address
        seller: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// List entries, newest first
    ///
    /// What sellers did in the panel, and operators and this command line to accounts, applications, tokens
    /// and buyers' data. Entries hold ids, never names of people, e-mail addresses or secrets;
    /// `application.changed` has each changed field, from what to what.
    List {
        /// Only entries by or about this id, of a seller, token, application, order or sealing key; of a seller
        /// also the number or the e-mail address
        #[arg(long, value_name = "ID")]
        about: Option<String>,
        /// Only entries from this instant on, such as 2027-01-15T08:00:00Z
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        since: Option<DateTime<Utc>>,
        /// Only entries before this instant
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        until: Option<DateTime<Utc>>,
        /// All pages
        #[arg(long, conflicts_with = "limit")]
        all: bool,
        #[command(flatten)]
        page: PageArgs,
    },
}

impl Options {
    pub(crate) fn run(self, sources: Sources) -> anyhow::Result<()> {
        let Self { format, command } = self;
        if let Command::Keys(keys::Command::Generate) = command {
            return keys::generate(format);
        }
        let loaded = load_for_command(sources)?;
        block_on(async {
            let database = match &command {
                Command::AdoptDatabase(_) => open_foreign_database(&loaded.config).await?,
                _ => open_database(&loaded.config).await?,
            };
            let done = match command {
                Command::Tokens(command) => command.run(&database, format).await,
                Command::OperatorTokens(command) => command.run(&database, format).await,
                Command::Connections(command) => command.run(&database, format).await,
                Command::Webhooks(command) => command.run(&database, format).await,
                Command::Mails(command) => command.run(&database, format).await,
                Command::Orders(command) => command.run(&database, format).await,
                Command::Audit(command) => command.run(&database, format).await,
                Command::AdoptDatabase(command) => command.run(&database, format).await,
                Command::Keys(command) => command.run(database.clone(), &loaded.config, format).await,
            };
            let Err(error) = done else { return Ok(()) };
            match database.lacking_rights(error.as_ref()).await {
                Ok(Some(forbidden)) => {
                    let reason = format!("{}; {forbidden}", error_chain(error.as_ref()));
                    Err(ExitError(Exit::Unavailable, reason).into())
                }
                _ => Err(error),
            }
        })
    }
}

/// The configured database, if the program can use it.
pub(crate) async fn open_database(config: &Config) -> anyhow::Result<Database> {
    let database = open_foreign_database(config).await?;
    let identity = database.identity().await?;
    if !identity.is_own() {
        bail!(ExitError(Exit::Unavailable, not_adopted(&identity)));
    }
    Ok(database)
}

/// The configured database, if the program can use its schema; its rows may have been written in another one.
async fn open_foreign_database(config: &Config) -> anyhow::Result<Database> {
    let database = wiring::database(config)?.with_os_user(os_user());
    require_schema(&database, false).await?;
    Ok(database)
}

/// The operating system's user of this process. With sudo also the one who called it: `jan as root`.
fn os_user() -> Option<String> {
    let user = whoami::username().ok()?;
    let caller = env::var("SUDO_USER")
        .ok()
        .filter(|caller| !caller.is_empty() && *caller != user);
    let name = caller.map_or_else(|| user.clone(), |caller| format!("{caller} as {user}"));
    Some(name.chars().take(MAX_OS_USER).collect()).filter(|name: &String| !name.is_empty())
}

impl OperatorTokens {
    async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        match self {
            Self::Create {
                name,
                expires_in,
                read_only,
            } => {
                let name = name.positional.or(name.flag).unwrap_or_default();
                let name =
                    token_name(name).map_err(|error| ExitError(Exit::Usage, format!("the name {error}")))?;
                let new = NewOperatorToken {
                    name: name.clone(),
                    lifetime: expires_in,
                    read_only,
                };
                let created = in_transaction(database, |tx| {
                    let (randomness, new) = (SystemRandomness::new(), new.clone());
                    Box::pin(async move { create_operator_token(tx, &randomness, new).await })
                });
                let (id, token) = created.await?;
                note(format_args!(
                    "created the operator token {id}; it is shown only once:"
                ));
                let object = json!({ "id": id.to_string(), "name": name, "token": token.reveal() });
                format.changed(&object, token.reveal())?;
            }
            Self::List => {
                let tokens = database.operator_tokens().operator_tokens().await?;
                format.list(&tokens)?;
            }
            Self::Revoke { id } => {
                let revoked = in_transaction(database, |tx| Box::pin(revoke_operator_token(tx, id)));
                if !revoked.await? {
                    bail!(not_found(format!(
                        "there is no operator token {id} that could be revoked: `seller-api admin operator-tokens list` shows all"
                    )));
                }
                let object = json!({ "id": id.to_string(), "revoked": true });
                format.changed(&object, format_args!("revoked {id}"))?;
            }
        }
        Ok(())
    }
}

impl Listed for OperatorTokenRecord {
    const COLUMNS: &'static str = "id created_at used_at expires_at revoked_at scopes name";

    fn object(&self) -> Value {
        let scopes: &[&str] = if self.read_only {
            &["read"]
        } else {
            &["read", "write"]
        };
        json!({
            "id": self.id.to_string(),
            "name": self.name,
            "scopes": scopes,
            "created_at": Timestamp::new(self.created_at),
            "used_at": self.used_at.map(Timestamp::new),
            "expires_at": self.expires_at.map(Timestamp::new),
            "revoked_at": self.revoked_at.map(Timestamp::new),
        })
    }
}

impl Audit {
    async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        let Self::List {
            about,
            since,
            until,
            all,
            page,
        } = self;
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            bail!(ExitError(
                Exit::Usage,
                "--since has to be before --until".to_owned()
            ));
        }
        let is_narrowed = page.before.is_some() || since.is_some() || until.is_some();
        let mut filter = AuditFilter {
            about,
            since,
            until,
            before: page.before,
        };
        let limit = if all { MAX_PAGE } else { page.limit };
        let mut entries = database.audit_entries(filter.clone(), limit).await?;
        let may_be_seller = |about: &&String| about.contains('@') || about.parse::<i32>().is_ok();
        if let Some(about) = filter.about.as_ref().filter(may_be_seller)
            && entries.is_empty()
        {
            filter.about = Some(find_seller(database, about).await?.id.to_string());
            entries = database.audit_entries(filter.clone(), limit).await?;
        }
        // An id may be valid although the audit log has no entry about it.
        let is_unknown =
            |about: &&String| about.parse::<Uuid>().is_err() && about.parse::<ClientId>().is_err();
        if let Some(about) = filter.about.as_ref().filter(is_unknown)
            && entries.is_empty()
            && !is_narrowed
        {
            bail!(not_found(format!(
                "the audit log has no entry about {about:?}: sellers, tokens and orders are named by ids such as \
                 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e, applications by their client_id, sealing keys by the text before their colon"
            )));
        }
        if !all {
            return Ok(format.page(&entries, page, |last| last.id)?);
        }
        format.list(&entries)?;
        while let Some(last) = entries.last().filter(|_| entries.len() == usize::from(limit)) {
            filter.before = Some(last.id);
            entries = database.audit_entries(filter.clone(), limit).await?;
            format.further(&entries)?;
        }
        Ok(())
    }
}

impl Listed for AuditEntry {
    const COLUMNS: &'static str = "at actor address action subject id changes";

    fn cell(&self, member: &str) -> Option<String> {
        let id = self.actor.id().map(|id| id.to_string());
        let who = id.or_else(|| self.os_user.clone());
        let who = who.map(|who| format!(" {who}")).unwrap_or_default();
        (member == "actor").then(|| format!("{}{who}", self.actor.kind()))
    }

    fn object(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "at": Timestamp::new(self.at),
            "actor": { "kind": self.actor.kind(), "id": self.actor.id().map(|id| id.to_string()) },
            "address": self.address.map(|address| address.to_string()),
            "action": self.action.as_str(),
            "subject": self.subject,
            "changes": self.changes,
            "os_user": self.os_user,
        })
    }
}

impl Connections {
    async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        let Self::List { seller } = self;
        let seller = find_seller(database, &seller).await?;
        let connections = database.grants().connections(seller.id, None, u16::MAX).await?;
        Ok(format.list(&connections)?)
    }
}

impl Listed for ConnectedApplication {
    const COLUMNS: &'static str = "client_id connected_at used_at name owner_name";

    fn object(&self) -> Value {
        json!({
            "client_id": self.client_id.to_string(),
            "name": self.name,
            "owner_id": self.owner.to_string(),
            "owner_name": self.owner_name,
            "scopes": self.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(),
            "connected_at": Timestamp::new(self.connected_at),
            "used_at": self.used_at.map(Timestamp::new),
        })
    }
}

/// A duration from now on.
fn lifetime(text: &str) -> Result<TimeDelta, String> {
    let period = Period::try_from(text.to_owned())?;
    if period.0.is_zero() || period.time_delta() > MAX_LIFETIME {
        return Err("must be longer than nothing and at most 36600d".to_owned());
    }
    Ok(period.time_delta())
}

fn id(text: &str) -> Result<Uuid, String> {
    text.parse()
        .map_err(|_| "must be an id such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e".to_owned())
}

/// An instant on the command line.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    web::timestamps::parse(text).ok_or_else(|| format!("must be {}", web::timestamps::EXPECTED))
}

/// Finds a seller, open or closed, by id, number or e-mail address.
pub(crate) async fn find_seller(database: &Database, name: &str) -> anyhow::Result<Seller> {
    let sellers = database.sellers();
    let found = if let Ok(id) = name.parse::<Uuid>() {
        sellers.seller(id.into()).await?
    } else if let Ok(number) = name.parse::<i32>() {
        let next = sellers.sellers(number.saturating_sub(1), 1).await?.pop();
        next.filter(|seller| seller.seller_no == number)
    } else {
        let account = database.panel().account(name).await?;
        account.map(|account| account.seller)
    };
    let unknown = || {
        format!(
            "there is no seller {name:?}: name an id such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e, a number or an e-mail address; \
             `GET /sellers` of the back office lists all"
        )
    };
    Ok(found.ok_or_else(|| not_found(unknown()))?)
}

/// Finds an application by its `client_id` or name.
async fn find_application(database: &Database, name: &str) -> anyhow::Result<Application> {
    let directory = database.application_directory();
    let found = match name.parse::<ClientId>() {
        Ok(client_id) => directory.application(client_id).await?,
        Err(_) => directory.application_named(name).await?,
    };
    let unknown = || {
        format!(
            "there is no application {name:?}: give a client_id or a name; `seller-api admin connections list` shows a seller's \
             connected ones, `GET /sellers/{{seller}}/applications` of the back office its own too"
        )
    };
    Ok(found.ok_or_else(|| not_found(unknown()))?)
}

fn not_found(reason: String) -> ExitError {
    ExitError(Exit::NotFound, reason)
}

/// Calls a use case in a transaction.
async fn in_transaction<T: Send, E: Retryable + Send>(
    database: &Database,
    use_case: impl for<'t> Fn(&'t dyn Transaction) -> BoxFuture<'t, Result<T, E>> + Send + Sync,
) -> Result<T, E> {
    transact(
        &*database.units(),
        &LockSet::default(),
        &use_case,
        |tx, use_case| use_case(tx),
    )
    .await
}
