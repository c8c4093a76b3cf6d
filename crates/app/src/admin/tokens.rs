//! `seller-api admin tokens`.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use adapter_postgres::Database;
use anyhow::{Context as _, bail};
use clap::Subcommand;
use kernel::TransactionError;
use oauth::{FamiliesOf, OperatorToken};
use serde_json::{Value, json};
use usecases::operator_tokens;
use usecases::revoke_tokens::{PresentedToken, revoke_all, revoke_presented};
use usecases::{ActingOperator, Failure};

use super::{Format, find_application, find_seller, in_transaction};
use crate::command::{self, Exit, note};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Revoke leaked tokens, or all of an application or a seller
    ///
    /// Takes effect with the next request. Leaked tokens, also operators', are read from stdin, one a line, so
    /// that they are in no process list and no shell history; a refresh token ends its whole family. Lines are
    /// reported by number, never by content. A line without a token, or with an unknown one, does not stop the
    /// others; the exit code is then 2 for a line without a token, else 3.
    ///
    /// An application's tokens are those of all sellers; a seller's tokens are those of all applications, and
    /// personal ones; the seller's sessions in the panel and one-time links end too, even a pending invitation. New
    /// tokens can be issued afterwards: to stop that, suspend the application or close the account.
    Revoke {
        #[command(flatten)]
        which: Which,
        /// Do not ask for confirmation; required without a terminal
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The tokens on stdin, one a line
    #[arg(long)]
    stdin: bool,
    /// All tokens of this application: `client_id` or name
    #[arg(long)]
    application: Option<String>,
    /// All tokens that act for this seller: id, number or e-mail address
    #[arg(long)]
    seller: Option<String>,
}

const PREFIXES: &str = "one begins with ps_at_, ps_rt_, ps_pt_ or ps_op_";

impl Command {
    pub(super) async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        let Self::Revoke { which, yes } = self;
        let (of, whose) = match (which.application, which.seller, which.stdin) {
            (Some(name), ..) => {
                let application = find_application(database, &name).await?;
                let whose = format!("the application {} ({})", application.name, application.client_id);
                (FamiliesOf::Application(application.client_id), whose)
            }
            (None, Some(name), _) => {
                let seller = find_seller(database, &name).await?;
                let whose = format!("seller {} ({})", seller.seller_no, seller.id);
                (FamiliesOf::Seller(seller.id), whose)
            }
            (None, None, _) => return revoke_from_stdin(database, format).await,
        };
        if !yes {
            let more = match of {
                FamiliesOf::Seller(_) => " and ending its sessions and links",
                FamiliesOf::Application(_) => "",
            };
            confirm(&format!("revoking all tokens of {whose}{more}"))?;
        }
        let revoked = in_transaction(database, |tx| {
            let by = ActingOperator::CommandLine;
            Box::pin(async move { Ok::<_, TransactionError>(revoke_all(tx, tx, by, of).await?) })
        });
        revoked.await?;
        let object = json!({ "of": of.to_string(), "revoked": true });
        Ok(format.changed(&object, format_args!("revoked all tokens of {whose}"))?)
    }
}

/// Asks before something that cannot be undone.
pub(super) fn confirm(action: &str) -> anyhow::Result<()> {
    let (input, mut output) = (io::stdin(), io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        let reason = format!("{action}: that cannot be undone; without a terminal, --yes is required");
        bail!(command::ExitError(Exit::Usage, reason));
    }
    write!(output, "{action}: that cannot be undone. Continue? [y/N] ")
        .context("cannot ask for confirmation")?;
    let mut answer = String::new();
    input.read_line(&mut answer).context("cannot read the answer")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}

/// Revokes the tokens on stdin, each in its own transaction.
async fn revoke_from_stdin(database: &Database, format: Format) -> anyhow::Result<()> {
    if io::stdin().is_terminal() {
        note("enter the tokens, one a line, then Ctrl-D:");
    }
    let (mut printed, mut at) = (Ok(()), 0_u64);
    let (mut revoked, mut malformed, mut unknown) = (0_u64, 0_u64, 0_u64);
    for line in io::stdin().lock().split(b'\n') {
        let line = line.context("cannot read the tokens from stdin")?;
        // Invalid UTF-8 never parses as a token.
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        at += 1;
        if line.is_empty() {
            continue;
        }
        let ended = match (PresentedToken::parse(line), OperatorToken::presented(line)) {
            (Some(token), _) => {
                let revoked = in_transaction(database, |tx| {
                    Box::pin(revoke_presented(tx, tx, ActingOperator::CommandLine, token))
                });
                revoked.await.map(|family| Some(("family", family.uuid())))
            }
            (None, Some(token)) => {
                let hash = token.hash();
                let revoked = in_transaction(database, |tx| {
                    Box::pin(operator_tokens::revoke_presented(tx, hash))
                });
                revoked.await.map(|id| Some(("operator_token", id)))
            }
            (None, None) => Ok(None),
        };
        let not_revoked = |reason: &str| {
            let object = json!({ "line": at, "family": Value::Null, "revoked": false, "error": reason });
            (object, format!("not revoked; {reason}"))
        };
        let (object, sentence) = match ended {
            Ok(Some((kind, id))) => {
                revoked += 1;
                let object = json!({ "line": at, (kind): id.to_string(), "revoked": true });
                (object, format!("revoked; {kind} {id}"))
            }
            // Invalid input is not echoed: it may be a secret.
            Ok(None) => {
                malformed += 1;
                not_revoked(&format!("the line must be a whole token alone: {PREFIXES}"))
            }
            Err(Failure::Refused(refusal)) => {
                unknown += 1;
                not_revoked(&refusal.to_string())
            }
            Err(Failure::Store(error)) => {
                let context = format!("at line {at}; the lines after it were not read");
                return Err(anyhow::Error::new(error).context(context));
            }
        };
        printed = printed.and(format.changed(&object, format_args!("line {at}: {sentence}")));
    }
    // A malformed line is worse than an unknown token, which can do no harm any more.
    let (exit, reason) = match (revoked, malformed, unknown) {
        (0, 0, 0) => (Exit::Usage, format!("stdin has no token: {PREFIXES}")),
        (_, 0, 0) => return Ok(printed?),
        (_, 0, _) => (Exit::NotFound, not_all(revoked, malformed, unknown)),
        _ => (Exit::Usage, not_all(revoked, malformed, unknown)),
    };
    bail!(command::ExitError(exit, reason))
}

fn not_all(revoked: u64, malformed: u64, unknown: u64) -> String {
    let not_revoked = malformed + unknown;
    format!(
        "revoked {revoked}, not revoked {not_revoked}: lines without a token: {malformed}, with an unknown one: {unknown}"
    )
}
