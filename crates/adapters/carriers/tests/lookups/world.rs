//! One carrier's client, a stub that plays the carrier, and a manual clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adapter_carriers::{Account, CarrierSettings, Carriers};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, Sighting, TrackingNumber};
use url::Url;

use crate::{
    fixtures,
    stub::{Reply, Stub, TOKEN_PATH},
};

/// The carriers with a client.
pub(crate) const CARRIERS: [Carrier; 7] = [
    Carrier::Inpost,
    Carrier::Dhl,
    Carrier::PocztaPolska,
    Carrier::Dpd,
    Carrier::Gls,
    Carrier::Ups,
    Carrier::Fedex,
];

/// The carriers with access tokens.
pub(crate) const WITH_TOKENS: [Carrier; 4] =
    [Carrier::PocztaPolska, Carrier::Gls, Carrier::Ups, Carrier::Fedex];

pub(crate) const NUMBER: &str = "00340434-TEST-1";
pub(crate) const LOGIN: &str = "whoever7login";
pub(crate) const SECRET: &str = "hush5secret";

/// Starts at 2026-01-06T22:00:00Z.
#[derive(Default)]
pub(crate) struct ManualClock(Mutex<TimeDelta>);

impl ManualClock {
    pub(crate) fn forward(&self, seconds: i64) {
        *self.0.lock().unwrap() += TimeDelta::seconds(seconds);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        at("2026-01-06T22:00:00Z") + *self.0.lock().unwrap()
    }
}

pub(crate) fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

pub(crate) fn number() -> TrackingNumber {
    TrackingNumber::new(NUMBER.to_owned()).unwrap()
}

/// Settings for one carrier at `base_url`.
pub(crate) fn settings(carrier: Carrier, base_url: &Url, deadline: Duration) -> CarrierSettings {
    let qualifier = match carrier {
        Carrier::Dhl => "parcel-pl",
        Carrier::Dpd => "channel1",
        _ => "",
    };
    let account = Account {
        base_url: base_url.clone(),
        token_url: base_url.join(TOKEN_PATH).unwrap(),
        qualifier: qualifier.to_owned(),
        ..Account::new(carrier, LOGIN.into(), SECRET.into()).unwrap()
    };
    CarrierSettings {
        deadline,
        user_agent: "Tests/1.0 (+https://tests.example)".to_owned(),
        accounts: vec![account],
    }
}

pub(crate) struct World {
    pub(crate) carrier: Carrier,
    pub(crate) stub: Stub,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) carriers: Carriers,
}

impl World {
    /// A world in which the carrier reports the parcel as delivered and issues tokens.
    pub(crate) async fn new(carrier: Carrier) -> Self {
        Self::within(carrier, adapter_carriers::DEADLINE).await
    }

    pub(crate) async fn within(carrier: Carrier, deadline: Duration) -> Self {
        let stub = Stub::start().await;
        stub.says([fixtures::delivered(carrier)]);
        stub.gives((1..=9).map(|n| fixtures::token(carrier, n)));
        let clock = Arc::new(ManualClock::default());
        let url = Url::parse(&format!("http://{}/", stub.address)).unwrap();
        let carriers = Carriers::new(&settings(carrier, &url, deadline), clock.clone()).unwrap();
        Self {
            carrier,
            stub,
            clock,
            carriers,
        }
    }

    pub(crate) fn clock() -> Arc<ManualClock> {
        Arc::default()
    }

    pub(crate) async fn ask(&self) -> Lookup {
        self.carriers.look_up(self.carrier, &number()).await
    }

    /// Looks the parcel up while the carrier sends this reply.
    pub(crate) async fn hears(&self, reply: Reply) -> Lookup {
        self.stub.says([reply]);
        self.ask().await
    }

    /// The reason for which a look-up has no answer if the carrier sends this reply.
    pub(crate) async fn fails(&self, reply: Reply) -> String {
        reason(self.hears(reply).await)
    }

    /// Asserts that look-ups succeed. Two of them keep the breaker closed after a failure.
    pub(crate) async fn recovers(&self) {
        for _ in 0..2 {
            found(self.hears(fixtures::delivered(self.carrier)).await);
        }
        self.stub.forget();
    }

    /// The number of tracking and of token requests that the stub has got.
    pub(crate) fn requests(&self) -> (usize, usize) {
        (self.stub.asked().len(), self.stub.token_requests().len())
    }

    pub(crate) fn asked(&self) -> usize {
        self.requests().0
    }
}

/// Checks several carriers concurrently. All worlds exist before the first check: creating an HTTP client blocks the thread for
/// longer than some deadlines.
pub(crate) async fn each(carriers: &[Carrier], deadline: Duration, check: impl AsyncFn(&World)) {
    let mut worlds = Vec::new();
    for carrier in carriers {
        worlds.push(World::within(*carrier, deadline).await);
    }
    join_all(worlds.iter().map(|world| check(world))).await;
}

pub(crate) fn found(lookup: Lookup) -> Sighting {
    match lookup {
        Lookup::Found(sighting) => sighting,
        other => panic!("not found: {other:?}"),
    }
}

pub(crate) fn reason(lookup: Lookup) -> String {
    match lookup {
        Lookup::Unavailable(reason) => reason,
        other => panic!("not unavailable: {other:?}"),
    }
}

pub(crate) async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting)
        .await
        .unwrap();
}
