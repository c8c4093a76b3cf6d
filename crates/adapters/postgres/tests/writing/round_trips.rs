//! What a write costs: round trips and statements, counted on the wire.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use kernel::Claimed;
use tempfile::TempDir;
use testkit::TestDatabase;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};
use usecases::{Work, transact};

use crate::support::{Fixture, Report, Restock, Settle, answer, claim, database};

/// What has gone over the wire.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Cost {
    /// How often the client spoke after the server had.
    round_trips: usize,
    /// Executions by the extended protocol, and simple queries.
    statements: usize,
}

/// One direction's bytes, as far as they make no whole message yet.
#[derive(Default)]
struct Meter {
    cost: Cost,
    server_spoke: bool,
}

/// A way to a database on which everything is counted.
struct CountedWay {
    url: String,
    meter: Arc<Mutex<Meter>>,
    _folder: TempDir,
}

impl CountedWay {
    fn to(database: &TestDatabase) -> Self {
        let config: tokio_postgres::Config = database.url().parse().unwrap();
        let Some(tokio_postgres::config::Host::Unix(target)) = config.get_hosts().first() else {
            panic!("the test's cluster listens on a unix socket");
        };
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let host = folder.path().to_str().unwrap().replace('/', "%2F");
        let url = format!(
            "postgres://{}@{host}/{}",
            config.get_user().unwrap(),
            config.get_dbname().unwrap()
        );
        let meter = Arc::new(Mutex::new(Meter {
            server_spoke: true,
            ..Meter::default()
        }));
        tokio::spawn(accept(listener, target.join(".s.PGSQL.5432"), Arc::clone(&meter)));
        Self {
            url,
            meter,
            _folder: folder,
        }
    }

    /// What has been spent since the last call.
    fn spent(&self) -> Cost {
        std::mem::take(&mut self.meter.lock().unwrap().cost)
    }
}

async fn accept(listener: UnixListener, target: PathBuf, meter: Arc<Mutex<Meter>>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = UnixStream::connect(&target).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        let counted = Arc::clone(&meter);
        tokio::spawn(async move {
            let (mut bytes, mut unread, mut started) = (vec![0; 65_536], Vec::new(), false);
            while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
                unread.extend_from_slice(&bytes[..n]);
                {
                    let mut meter = counted.lock().unwrap();
                    meter.cost.round_trips += usize::from(std::mem::take(&mut meter.server_spoke));
                    meter.cost.statements += statements(&mut unread, &mut started);
                }
                to_server.write_all(&bytes[..n]).await.unwrap();
            }
        });
        let counted = Arc::clone(&meter);
        tokio::spawn(async move {
            let mut bytes = vec![0; 65_536];
            while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
                counted.lock().unwrap().server_spoke = true;
                if to_client.write_all(&bytes[..n]).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Counts `Execute` and `Query` among the whole messages of a client, and takes these away. The first message has no type.
fn statements(unread: &mut Vec<u8>, started: &mut bool) -> usize {
    let mut found = 0;
    loop {
        let head = usize::from(*started);
        let Some(length) = unread.get(head..head + 4) else {
            return found;
        };
        let length = head + usize::try_from(u32::from_be_bytes(length.try_into().unwrap())).unwrap();
        if unread.len() < length {
            return found;
        }
        found += usize::from(*started && matches!(unread[0], b'E' | b'Q'));
        *started = true;
        unread.drain(..length);
    }
}

/// On one thread, so that what is sent together is on the wire together.
#[tokio::test]
async fn a_keyed_write_costs_a_claim_and_four_round_trips() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 100).await;
    let way = CountedWay::to(&fixture.place);
    let counted = database(&way.url, 1);
    let keyed = async |work: &dyn Work<Done = (), Error = usecases::UnitOfWorkError>, key: &str| {
        let claim = claim(seller, key, "a");
        way.spent();
        let claimed = counted
            .claims()
            .claim(&claim, std::time::Duration::from_mins(1))
            .await
            .unwrap();
        assert_eq!(
            (claimed, way.spent()),
            (
                Claimed::Run,
                Cost {
                    round_trips: 1,
                    statements: 1
                }
            )
        );
        let tx = counted.units().begin().await.unwrap();
        work.run(&*tx).await.unwrap();
        tx.complete(&claim, &answer("a")).await.unwrap();
        tx.commit().await.unwrap();
        way.spent()
    };
    // The first time statements are prepared, which is not counted.
    let mut spent = Vec::new();
    for round in 0..2 {
        warm_up(&counted, round).await;
        let order = fixture.place(&[(seller, offer)]).await;
        transact(
            &*fixture.database.units(),
            &Settle(order.clone(), usecases::settle_order::Settlement::Pay),
        )
        .await
        .unwrap();
        let patch = keyed(
            &Quiet(Restock(seller, offer, 200 + round)),
            &format!("patch {round}"),
        )
        .await;
        let shipment = keyed(&Quiet(Report::of(seller, order)), &format!("shipment {round}")).await;
        spent = vec![patch, shipment];
    }
    // begin with its opening | lock | update, change, completion | commit
    assert_eq!(
        spent[0],
        Cost {
            round_trips: 4,
            statements: 7
        }
    );
    // begin with its opening | lock | update, parcel, mail, change, deliveries, completion | commit
    assert_eq!(
        spent[1],
        Cost {
            round_trips: 4,
            statements: 10
        }
    );
}

async fn warm_up(counted: &adapter_postgres::Database, round: i64) {
    let claim = claim(crate::support::id().into(), &format!("warm {round}"), "a");
    counted
        .claims()
        .claim(&claim, std::time::Duration::from_mins(1))
        .await
        .unwrap();
}

/// Work whose result nobody looks at.
struct Quiet<W>(W);

#[async_trait::async_trait]
impl<W: Work<Error: std::fmt::Debug>> Work for Quiet<W> {
    type Done = ();
    type Error = usecases::UnitOfWorkError;

    async fn run(&self, tx: &dyn usecases::Transaction) -> Result<(), Self::Error> {
        self.0.run(tx).await.unwrap();
        Ok(())
    }
}
