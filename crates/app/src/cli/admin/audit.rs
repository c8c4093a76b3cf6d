//! `seller-api admin audit`: who did what, when, from where.

use chrono::SecondsFormat;
use clap::Subcommand;
use oauth::{Actor, AuditEntry};
use serde_json::json;
use uuid::Uuid;

use super::{
    super::{exit::Stopped, output, values},
    office::Office,
};

/// The widest actor: a kind, a space, and an id.
const ACTOR: usize = 45;
/// The widest action.
const ACTION: usize = 26;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List what was done, newest first
    ///
    /// Sellers' moves in the panel, operators' over accounts, applications, tokens and buyers' data, and those of this
    /// command line. Everything is named by its id: there are no names, addresses of e-mail or secrets in the log.
    #[command(after_long_help = "\
Examples:
  seller-api admin audit list --limit 20
  seller-api admin audit list --about 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e    a seller
  seller-api admin audit list --about psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e    an application
  seller-api admin audit list --before 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e   the next page
  seller-api admin audit list --json | jq -r 'select(.action == \"session.refused\").address'")]
    List(List),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only what this one did, or what was done to it: the id of a seller, token, application, order or sealing key
    #[arg(long, value_name = "ID", value_parser = values::subject)]
    about: Option<String>,
    /// How many entries at most, 1 to 1000
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only entries older than the one with this id
    #[arg(long, value_name = "ID", value_parser = values::id)]
    before: Option<Uuid>,
    /// One JSON object a line instead of a table
    #[arg(long)]
    json: bool,
}

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        let Self::List(list) = self;
        let log = office.database.audit();
        let entries = log.entries(list.about.clone(), list.before, list.limit).await?;
        if let Some(about) = list.about.filter(|about| !values::is_id(about))
            && entries.is_empty()
            && list.before.is_none()
        {
            return Err(Stopped::NotFound(format!(
                "the audit log tells of no {about:?}: sellers, tokens and orders are named by ids such as \
                 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e, applications by their client_id, sealing keys by what stands before their colon"
            ))
            .into());
        }
        if !list.json {
            output::print(row(["TIME", "ACTOR", "FROM", "ACTION", "SUBJECT", "ID"]))?;
        }
        for entry in entries {
            output::print(if list.json { object(&entry) } else { line(&entry) })?;
        }
        Ok(())
    }
}

fn line(entry: &AuditEntry) -> String {
    row([
        &time(entry),
        &actor(entry.actor),
        &address(entry).unwrap_or_else(|| "-".to_owned()),
        entry.action.as_str(),
        &entry.subject,
        &entry.id.to_string(),
    ])
}

/// Columns of one width, so that lines can be cut and compared. Only an IPv6 address may stand out.
fn row([time, actor, from, action, subject, id]: [&str; 6]) -> String {
    format!("{time:<20}  {actor:<ACTOR$}  {from:<15}  {action:<ACTION$}  {subject:<36}  {id}")
}

fn object(entry: &AuditEntry) -> String {
    json!({
        "id": entry.id.to_string(),
        "at": entry.at.to_rfc3339_opts(SecondsFormat::Micros, true),
        "actor": { "kind": entry.actor.kind(), "id": entry.actor.id().map(|id| id.to_string()) },
        "address": address(entry),
        "action": entry.action.as_str(),
        "subject": entry.subject,
    })
    .to_string()
}

fn time(entry: &AuditEntry) -> String {
    entry.at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn actor(actor: Actor) -> String {
    let id = actor.id().map(|id| format!(" {id}"));
    format!("{}{}", actor.kind(), id.unwrap_or_default())
}

fn address(entry: &AuditEntry) -> Option<String> {
    entry.address.map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use oauth::Action;

    use super::*;

    fn entry(actor: Actor) -> AuditEntry {
        AuditEntry {
            id: Uuid::from_u128(1),
            at: DateTime::from_timestamp(1_700_000_000, 5_000).unwrap(),
            actor,
            address: actor.id().map(|_| "192.0.2.7".parse().unwrap()),
            action: Action::SellerClosed,
            subject: Uuid::from_u128(2).to_string(),
        }
    }

    #[test]
    fn lines_stand_under_their_headings() {
        let head = row(["TIME", "ACTOR", "FROM", "ACTION", "SUBJECT", "ID"]);
        for actor in [Actor::CommandLine, Actor::Operator(Uuid::from_u128(3))] {
            let line = line(&entry(actor));
            for (heading, value) in [
                ("ACTOR", actor.kind()),
                ("ACTION", "seller.closed"),
                ("ID", "00000000-0000-0000-0000-000000000001"),
            ] {
                assert_eq!(head.rfind(heading), line.rfind(value), "{heading} in {line}");
            }
        }
    }

    #[test]
    fn the_widest_words_have_room() {
        assert!(Action::ALL.iter().all(|action| action.as_str().len() <= ACTION));
        let actors = [
            Actor::Seller(Uuid::nil().into()),
            Actor::Operator(Uuid::nil()),
            Actor::CommandLine,
        ];
        assert!(actors.map(actor).iter().all(|actor| actor.len() <= ACTOR));
    }

    #[test]
    fn json_tells_nobody_as_null() {
        let told = object(&entry(Actor::CommandLine));
        let read: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(read["actor"], json!({ "kind": "command_line", "id": null }));
        assert_eq!(read["address"], serde_json::Value::Null);
        assert_eq!(read["at"], "2023-11-14T22:13:20.000005Z");
    }
}
