//! `seller-api admin mails`.

use adapter_postgres::Database;
use anyhow::bail;
use clap::Subcommand;
use kernel::TransactionError;
use orders::GivenUpMail;
use serde_json::{Value, json};
use usecases::{ActingOperator, send_mails::send_again};
use uuid::Uuid;

use super::listing::{Format, Listed, PageArgs, Timestamp};
use super::{id, in_transaction, not_found};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List mails to buyers that were given up, newest first
    ///
    /// The log says why, under the mail's id. Mails to sellers are not here: their links are gone, and
    /// sellers ask for new ones.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Send mails that were given up again
    ///
    /// They are due at once, with all attempts. Prints the ids.
    SendAgain {
        /// The mails' ids, as `list` shows them
        #[arg(value_parser = id, required = true)]
        mails: Vec<Uuid>,
    },
}

impl Command {
    pub(super) async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        match self {
            Self::List { page } => {
                let before = page.before.map(Into::into);
                let mails = database.given_up_mails(before, page.limit).await?;
                Ok(format.page(&mails, page, |last| last.id.uuid())?)
            }
            Self::SendAgain { mails } => {
                let (mut printed, mut unknown) = (Ok(()), Vec::new());
                for mail in mails {
                    let again = in_transaction(database, move |tx| {
                        Box::pin(async move {
                            let by = ActingOperator::CommandLine;
                            Ok::<_, TransactionError>(send_again(tx, tx, by, mail.into()).await?)
                        })
                    });
                    if again.await? {
                        let object = json!({ "mail_id": mail.to_string() });
                        printed = printed.and(format.changed(&object, mail));
                    } else {
                        unknown.push(mail.to_string());
                    }
                }
                if !unknown.is_empty() {
                    bail!(not_found(format!(
                        "there is no mail {} that was given up: `seller-api admin mails list` shows all",
                        unknown.join(", ")
                    )));
                }
                Ok(printed?)
            }
        }
    }
}

impl Listed for GivenUpMail {
    const COLUMNS: &'static str = "id created_at given_up_at attempts order_number order_id";

    fn object(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "order_id": self.order.to_string(),
            "order_number": self.number.as_str(),
            "created_at": Timestamp::new(self.created_at),
            "given_up_at": Timestamp::new(self.given_up_at),
            "attempts": self.attempts,
        })
    }
}
