//! Tokens: issued, used and revoked; and the gate's count of requests. No request here has an idempotency key.

use blackbox::{Application, Asking, CALLBACK, Callback, Form, Member, Pair, World, encoded};
use reqwest::Method;
use testkit::{Fault, Request};
use tokio::sync::Mutex;

use crate::rig::{Case, Held, Played, Rig};

/// A seller and an application of another owner.
pub(crate) struct Connected {
    member: Mutex<Member>,
    application: Application,
}

impl Connected {
    async fn new(rig: &Rig) -> Self {
        Self {
            application: rig
                .world
                .partner(&rig.world.seller().await, &["offers:read"])
                .await,
            member: Mutex::new(rig.world.member().await),
        }
    }

    fn oauth(&self, world: &World, endpoint: &str, fields: &[(&str, &str)]) -> Request {
        let mut fields = fields.to_vec();
        fields.push(("client_id", &self.application.client_id));
        fields.push(("client_secret", &self.application.client_secret));
        world
            .client
            .post(&world.url(&format!("/oauth/{endpoint}")))
            .form(&encoded(&fields))
    }
}

/// Whether the presented token was used already: by an earlier request of the same client whose process was killed or which was
/// overtaken. Only then may a client lose its family although it presents nothing twice on purpose.
fn was_used<S>(played: &Played<'_, S>) -> bool {
    played.answer.status == 400 && matches!(played.fault, Some(Fault::ProcessDies | Fault::Waits))
}

/// Checks that the pair in an answer works, unless another request has used the presented token.
async fn pair_works<S>(world: &World, played: &Played<'_, S>) -> Held {
    if was_used(played) || played.fault == Some(Fault::Waits) {
        return Ok(());
    }
    if played.answer.status != 200 {
        return Err(format!("the family is lost: {:?}", played.answer));
    }
    works(world, &Pair::of(played.answer.clone()).access, true).await
}

async fn works(world: &World, access: &str, expected: bool) -> Held {
    match world.works(access).await {
        works if works == expected => Ok(()),
        works => Err(format!("that the token works is {works}")),
    }
}

pub(crate) struct Refresh(Connected);

impl Refresh {
    pub(crate) async fn new(rig: &Rig) -> Self {
        Self(Connected::new(rig).await)
    }
}

impl Case for Refresh {
    type Subject = Pair;

    fn is_keyed(&self) -> bool {
        false
    }

    async fn prepare(&self, world: &World) -> Pair {
        let mut member = self.0.member.lock().await;
        world
            .pair(&mut member.browser, &self.0.application, "offers:read")
            .await
    }

    fn request(&self, world: &World, pair: &Pair) -> Request {
        self.0.oauth(
            world,
            "token",
            &[("grant_type", "refresh_token"), ("refresh_token", &pair.refresh)],
        )
    }

    async fn judge(&self, world: &World, played: &Played<'_, Pair>) -> Held {
        if was_used(played) {
            // The second use has revoked the family.
            works(world, &played.subject.access, false).await?;
        }
        pair_works(world, played).await
    }
}

struct Exchange(Connected);

impl Case for Exchange {
    type Subject = (Asking, String);

    fn is_keyed(&self) -> bool {
        false
    }

    async fn prepare(&self, world: &World) -> (Asking, String) {
        let asking = world.asking(&self.0.application, "offers:read");
        let code = world.code(&mut self.0.member.lock().await.browser, &asking).await;
        (asking, code)
    }

    fn request(&self, world: &World, (asking, code): &(Asking, String)) -> Request {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", &asking.verifier),
        ];
        self.0.oauth(world, "token", &fields)
    }

    async fn judge(&self, world: &World, played: &Played<'_, (Asking, String)>) -> Held {
        pair_works(world, played).await
    }
}

/// A seller's decision about an application's request.
struct Consent(Connected, &'static str);

impl Case for Consent {
    type Subject = (Asking, Form, Member);

    fn is_keyed(&self) -> bool {
        false
    }

    async fn prepare(&self, world: &World) -> (Asking, Form, Member) {
        let asking = world.asking(&self.0.application, "offers:read");
        let mut member = self.0.member.lock().await;
        let page = world.screen(&mut member.browser, &asking).await;
        (
            asking,
            page.form("/panel/consent").press("decision", self.1),
            member.clone(),
        )
    }

    fn request(&self, world: &World, (_, form, member): &(Asking, Form, Member)) -> Request {
        let mut browser = world.visitor();
        browser.cookies.clone_from(&member.browser.cookies);
        browser.request(Method::POST, &form.action).form(&form.body())
    }

    async fn judge(&self, world: &World, played: &Played<'_, (Asking, Form, Member)>) -> Held {
        let died = matches!(played.fault, Some(Fault::ProcessDies | Fault::Waits));
        if played.answer.status == 410 && died {
            // The first decision counts; its code was lost with the process.
            return Ok(());
        }
        let back = Callback::of(&played.answer);
        if self.1 == "deny" {
            assert_eq!(back.get("error"), Some("access_denied"), "{back:?}");
            return Ok(());
        }
        let code = back.code();
        match world
            .exchange(&self.0.application, &played.subject.0, &code)
            .await
            .status
        {
            200 => Ok(()),
            status => Err(format!("the code is worth {status}")),
        }
    }
}

/// The revocation of an access token that has been used.
pub(crate) struct Revocation(Connected);

impl Revocation {
    pub(crate) async fn new(rig: &Rig) -> Self {
        Self(Connected::new(rig).await)
    }
}

impl Case for Revocation {
    type Subject = Pair;

    fn is_keyed(&self) -> bool {
        false
    }

    async fn prepare(&self, world: &World) -> Pair {
        let mut member = self.0.member.lock().await;
        let pair = world
            .pair(&mut member.browser, &self.0.application, "offers:read")
            .await;
        assert!(world.works(&pair.access).await);
        pair
    }

    fn request(&self, world: &World, pair: &Pair) -> Request {
        self.0.oauth(world, "revoke", &[("token", &pair.access)])
    }

    async fn judge(&self, world: &World, played: &Played<'_, Pair>) -> Held {
        match played.answer.status {
            200 => works(world, &played.subject.access, false).await,
            _ => Err(format!("{:?}", played.answer)),
        }
    }
}

struct ClientToken;

impl Case for ClientToken {
    type Subject = Application;

    fn is_keyed(&self) -> bool {
        false
    }

    async fn prepare(&self, world: &World) -> Application {
        world.application(&world.seller().await, &["offers:read"]).await
    }

    fn request(&self, world: &World, application: &Application) -> Request {
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", &*application.client_id),
            ("client_secret", &*application.client_secret),
        ];
        world
            .client
            .post(&world.url("/oauth/token"))
            .form(&encoded(&fields))
    }

    async fn judge(&self, world: &World, played: &Played<'_, Application>) -> Held {
        if played.answer.status != 200 {
            return Err(format!("{:?}", played.answer));
        }
        let access = played.answer.json()["access_token"].as_str().unwrap().to_owned();
        works(world, &access, true).await
    }
}

/// Requests of an application that gets no other requests.
pub(crate) struct Counting;

/// A separate token, the application, and the number of its requests that were counted.
pub(crate) struct Counted {
    token: String,
    application: Application,
    before: i64,
}

async fn counted(world: &World, application: &Application) -> i64 {
    let used = "select coalesce(sum(used), 0)::bigint from rate_windows where replace(subject::text, '-', '') = \
                split_part($1, '_', 2)";
    world.count(used, &application.client_id).await
}

impl Case for Counting {
    type Subject = Counted;

    fn is_keyed(&self) -> bool {
        false
    }

    async fn prepare(&self, world: &World) -> Counted {
        let application = world.application(&world.seller().await, &["offers:read"]).await;
        let (token, before) = (
            world.token(&application).await,
            counted(world, &application).await,
        );
        Counted {
            token,
            application,
            before,
        }
    }

    fn request(&self, world: &World, subject: &Counted) -> Request {
        world.client.get(&world.url("/v1/me")).bearer(&subject.token)
    }

    async fn judge(&self, world: &World, played: &Played<'_, Counted>) -> Held {
        let counted = counted(world, &played.subject.application).await - played.subject.before;
        let sent = i64::try_from(played.sent).unwrap();
        if played.answer.status == 200 && (1..=sent).contains(&counted) {
            return Ok(());
        }
        Err(format!(
            "{counted} of {sent} requests are counted: {:?}",
            played.answer
        ))
    }
}

#[tokio::test]
async fn a_refresh_token_gives_one_pair() {
    let mut rig = Rig::new(&[]).await;
    let case = Refresh::new(&rig).await;
    rig.hold(&case).await.unwrap();
    rig.hold_against_rivals(&case).await.unwrap();
}

#[tokio::test]
async fn a_code_gives_one_pair() {
    let mut rig = Rig::new(&[]).await;
    let case = Exchange(Connected::new(&rig).await);
    rig.hold(&case).await.unwrap();
    rig.hold_against_rivals(&case).await.unwrap();
}

#[tokio::test]
async fn a_revoked_token_is_dead_at_once() {
    let mut rig = Rig::new(&[]).await;
    let case = Revocation::new(&rig).await;
    rig.hold(&case).await.unwrap();
}

#[tokio::test]
async fn a_consent_gives_one_code_and_a_refusal_none() {
    let mut rig = Rig::new(&[]).await;
    for decision in ["approve", "deny"] {
        let case = Consent(Connected::new(&rig).await, decision);
        rig.hold(&case).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_gets_a_token_that_works() {
    Rig::new(&[]).await.hold(&ClientToken).await.unwrap();
}

#[tokio::test]
async fn a_request_is_counted_once() {
    Rig::new(&[]).await.hold(&Counting).await.unwrap();
}
