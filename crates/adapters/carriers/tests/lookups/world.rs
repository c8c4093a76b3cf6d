//! One carrier's client, the stub that plays the carrier, and a clock that stands until it is moved.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adapter_carriers::{
    CarrierSettings, Carriers, DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::Clock;
use orders::{Carrier, CarrierLookup, Lookup, Sighting, TrackingNumber};
use secrecy::SecretString;
use url::Url;

use crate::{
    fixtures,
    stub::{Reply, Stub, TOKEN_PATH},
};

/// The carriers that can be asked.
pub(crate) const CARRIERS: [Carrier; 7] = [
    Carrier::Inpost,
    Carrier::Dhl,
    Carrier::PocztaPolska,
    Carrier::Dpd,
    Carrier::Gls,
    Carrier::Ups,
    Carrier::Fedex,
];

/// Those that want a token first.
pub(crate) const WITH_TOKENS: [Carrier; 4] =
    [Carrier::PocztaPolska, Carrier::Gls, Carrier::Ups, Carrier::Fedex];

pub(crate) const NUMBER: &str = "00340434-TEST-1";
pub(crate) const LOGIN: &str = "whoever7login";
pub(crate) const SECRET: &str = "hush5secret";

/// Starts at 2026-01-06T22:00:00Z.
#[derive(Default)]
pub(crate) struct Hand(Mutex<TimeDelta>);

impl Hand {
    pub(crate) fn forward(&self, seconds: i64) {
        *self.0.lock().unwrap() += TimeDelta::seconds(seconds);
    }
}

impl Clock for Hand {
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

pub(crate) fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

/// Settings that send one carrier's questions to `base_url`.
pub(crate) fn settings(carrier: Carrier, base_url: &Url, deadline: Duration) -> CarrierSettings {
    let base_url = base_url.clone();
    let token_url = base_url.join(TOKEN_PATH).unwrap();
    let oauth = || OauthSettings {
        base_url: base_url.clone(),
        token_url: token_url.clone(),
        client_id: secret(LOGIN),
        client_secret: secret(SECRET),
    };
    let mut settings = CarrierSettings::none("Tests/1.0 (+https://tests.example)");
    settings.deadline = deadline;
    match carrier {
        Carrier::Inpost => {
            let token = Some(secret(SECRET));
            settings.inpost = Some(InpostSettings { base_url, token });
        }
        Carrier::Dhl => {
            let service = Some("parcel-pl".to_owned());
            settings.dhl = Some(DhlSettings {
                base_url,
                api_key: secret(SECRET),
                service,
            });
        }
        Carrier::PocztaPolska => {
            let (login, password) = (secret(LOGIN), secret(SECRET));
            settings.poczta_polska = Some(PocztaPolskaSettings {
                base_url,
                token_url,
                login,
                password,
            });
        }
        Carrier::Dpd => {
            let (channel, login, password) = ("channel1".to_owned(), secret(LOGIN), secret(SECRET));
            settings.dpd = Some(DpdSettings {
                base_url,
                channel,
                login,
                password,
            });
        }
        Carrier::Gls => settings.gls = Some(oauth()),
        Carrier::Ups => settings.ups = Some(oauth()),
        Carrier::Fedex => settings.fedex = Some(oauth()),
        Carrier::Other => panic!("nobody to ask"),
    }
    settings
}

pub(crate) struct World {
    pub(crate) carrier: Carrier,
    pub(crate) stub: Stub,
    pub(crate) clock: Arc<Hand>,
    pub(crate) carriers: Carriers,
}

impl World {
    /// A carrier that knows the parcel as delivered and hands out tokens.
    pub(crate) async fn new(carrier: Carrier) -> Self {
        Self::within(carrier, adapter_carriers::DEADLINE).await
    }

    pub(crate) async fn within(carrier: Carrier, deadline: Duration) -> Self {
        let stub = Stub::start().await;
        stub.says([fixtures::delivered(carrier)]);
        stub.gives((1..=9).map(|n| fixtures::token(carrier, n)));
        let clock = Arc::new(Hand::default());
        let url = Url::parse(&format!("http://{}/", stub.address)).unwrap();
        let carriers = Carriers::new(&settings(carrier, &url, deadline), clock.clone()).unwrap();
        Self {
            carrier,
            stub,
            clock,
            carriers,
        }
    }

    pub(crate) async fn ask(&self) -> Lookup {
        self.carriers.look_up(self.carrier, &number()).await
    }

    /// What is found when the carrier says this.
    pub(crate) async fn hears(&self, reply: Reply) -> Lookup {
        self.stub.says([reply]);
        self.ask().await
    }

    /// Two answers after a failure, so that no breaker opens, and what was counted is taken back.
    pub(crate) async fn recovers(&self) {
        for _ in 0..2 {
            found(self.hears(fixtures::delivered(self.carrier)).await);
        }
        self.stub.forget();
    }

    pub(crate) fn asked(&self) -> usize {
        self.stub.asked().len()
    }

    pub(crate) fn token_requests(&self) -> usize {
        self.stub.token_requests().len()
    }
}

/// Checks something of several carriers at a time. The worlds are there before any check begins: making an HTTP client
/// holds up the thread longer than some deadlines.
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

/// Waits until something holds that happens on its own.
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
