//! Gauges of what waits to be done beside requests. Every process tells them, also one that does none of it: somebody has to
//! see that nobody does.

use std::time::Duration;

use adapter_postgres::{Backlog, Database, Queues};
use metrics::Gauge;
use orders::Carrier;
use tokio::time::sleep;

use crate::readiness::Readiness;

/// How often the queues are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long a queue is, and how long its oldest has been due.
struct QueueGauges {
    waiting: Gauge,
    overdue: Gauge,
}

impl QueueGauges {
    fn tell(&self, backlog: Option<Backlog>) {
        let (waiting, overdue) = backlog.map_or((f64::NAN, f64::NAN), |backlog| {
            (f64::from(backlog.waiting), backlog.overdue.as_secs_f64())
        });
        self.waiting.set(waiting);
        self.overdue.set(overdue);
    }
}

/// Looks at the queues again and again, once the schema is there. While they cannot be read, what they hold is unknown: NaN.
pub(crate) async fn watch_queues(database: Database, readiness: Readiness) {
    readiness.reached().await;
    loop {
        match database.queues().await {
            Ok(queues) => tell(Some(&queues)),
            Err(error) => {
                tracing::debug!(%error, "the queues cannot be looked at");
                tell(None);
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

fn tell(queues: Option<&Queues>) {
    let deliveries = |attempt: &'static str| QueueGauges {
        waiting: metrics::gauge!("webhook_queue_deliveries", "attempt" => attempt),
        overdue: metrics::gauge!("webhook_queue_oldest_due_seconds", "attempt" => attempt),
    };
    let mails = |about: &'static str| QueueGauges {
        waiting: metrics::gauge!("mail_queue_mails", "about" => about),
        overdue: metrics::gauge!("mail_queue_oldest_due_seconds", "about" => about),
    };
    deliveries("first").tell(queues.map(|queues| queues.first_deliveries));
    deliveries("repeated").tell(queues.map(|queues| queues.repeated_deliveries));
    mails("shipment").tell(queues.map(|queues| queues.shipment_mails));
    mails("account").tell(queues.map(|queues| queues.account_mails));
    for carrier in Carrier::ALL
        .into_iter()
        .filter(|carrier| *carrier != Carrier::Other)
    {
        let parcels = QueueGauges {
            waiting: metrics::gauge!("tracking_queue_parcels", "carrier" => carrier.as_str()),
            overdue: metrics::gauge!("tracking_queue_oldest_due_seconds", "carrier" => carrier.as_str()),
        };
        let of_carrier = |queues: &Queues| {
            queues
                .parcels
                .iter()
                .find(|(of, _)| *of == carrier)
                .map(|(_, b)| *b)
        };
        parcels.tell(queues.and_then(of_carrier));
    }
}
