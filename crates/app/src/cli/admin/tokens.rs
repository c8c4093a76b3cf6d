//! `seller-api admin tokens`.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use anyhow::Context as _;
use async_trait::async_trait;
use clap::Subcommand;
use oauth::{FamiliesOf, FamilyId};
use serde_json::json;
use usecases::{
    ActingOperator, Failure, Transaction, Work,
    revoke_tokens::{Found, Refusal, revoke_all, revoke_found},
};

use super::{
    super::{
        exit::Stopped,
        output,
        values::{ApplicationName, SellerName},
    },
    confirmation::Confirmation,
    listing::Format,
    office::Office,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Revoke a token that was found, or all of an application or a seller
    ///
    /// From the next request on. A token is read from stdin, so that it stands in no list of processes and no history of a
    /// shell; a refresh token takes its whole family with it. Of an application all tokens are meant, whichever sellers' they
    /// are, of a seller all, whichever applications', personal ones too. New ones can be had afterwards: to stop that, suspend
    /// the application or close the account.
    #[command(after_long_help = "\
Examples:
  seller-api admin tokens revoke --stdin < leaked.txt
  seller-api admin tokens revoke --application 'Stock Sync'
  seller-api admin tokens revoke --seller 17 --yes")]
    Revoke(Revoke),
}

#[derive(Debug, clap::Args)]
pub(super) struct Revoke {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The one token that stdin holds
    #[arg(long)]
    stdin: bool,
    /// All tokens of this application: `client_id` or name
    #[arg(long)]
    application: Option<ApplicationName>,
    /// All tokens that act for this seller: id, number or e-mail address
    #[arg(long)]
    seller: Option<SellerName>,
}

/// Longer than any token.
const LONGEST: u64 = 1024;

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        let Self::Revoke(Revoke {
            which,
            confirmation,
            format,
        }) = self;
        let (of, whose) = match (which.application, which.seller, which.stdin) {
            (Some(name), ..) => {
                let application = office.application(&name).await?;
                let whose = format!("the application {} ({})", application.name, application.client_id);
                (FamiliesOf::Application(application.client_id), whose)
            }
            (None, Some(name), _) => {
                let seller = office.seller(&name).await?;
                let whose = format!("seller {} ({})", seller.seller_no, seller.id);
                (FamiliesOf::Seller(seller.id), whose)
            }
            (None, None, _) => return revoke_one(office, format).await,
        };
        confirmation.ask(format_args!("revoking all tokens of {whose}"))?;
        let ended = office.change(&All(of)).await?;
        let object = json!({ "of": of.to_string(), "grants_ended": ended });
        Ok(format.changed(
            &object,
            format_args!("revoked all tokens of {whose}; {ended} grants ended"),
        )?)
    }
}

async fn revoke_one(office: &Office, format: Format) -> anyhow::Result<()> {
    let token = presented()?;
    let family = office.change(&One(token)).await?;
    let object = json!({ "family": family.to_string(), "revoked": true });
    Ok(format.changed(&object, format_args!("revoked; the token's family is {family}"))?)
}

/// The token that stdin holds. What it is instead is never repeated.
fn presented() -> anyhow::Result<Found> {
    let input = io::stdin();
    if input.is_terminal() {
        output::note("the token, and Enter:");
    }
    let mut text = String::new();
    input
        .lock()
        .take(LONGEST)
        .read_line(&mut text)
        .context("cannot read the token from stdin")?;
    let text = text.trim();
    if text.starts_with("ps_op_") {
        let other = "stdin holds an operator's token: `seller-api admin operator-tokens revoke` ends those, by their id";
        return Err(Stopped::Usage(other.to_owned()).into());
    }
    Found::parse(text).ok_or_else(|| {
        Stopped::Usage("stdin holds no token: one begins with ps_at_, ps_rt_ or ps_pt_".to_owned()).into()
    })
}

struct One(Found);

#[async_trait]
impl Work for One {
    type Done = FamilyId;
    type Error = Failure<Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<FamilyId, Self::Error> {
        revoke_found((tx, tx), ActingOperator::CommandLine, self.0).await
    }
}

struct All(FamiliesOf);

#[async_trait]
impl Work for All {
    type Done = usize;
    type Error = Failure<Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<usize, Self::Error> {
        revoke_all((tx, tx), ActingOperator::CommandLine, self.0).await
    }
}
