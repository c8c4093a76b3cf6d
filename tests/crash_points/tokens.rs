//! Tokens: issued, used and revoked; and the gate's count of requests. No request here has an idempotency
//! key.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use blackbox::{Application, Asking, Callback, Form, Member, Pair, World, refreshing, text};
use reqwest::Method;
use testkit::{Fault, Request, Rewrite};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::rig::{Case, Played, Rig, Verdict};

/// No credential is exchanged in a batch: each has its own transaction, as what drops out has.
const ALONE: Rewrite = Rewrite {
    this: "or false and clock.at < k.asked_at",
    instead_of: "or clock.at < k.asked_at",
};

/// A seller and an application of another owner.
struct Connected {
    member: Mutex<Member>,
    application: Application,
}

impl Connected {
    async fn new(rig: &Rig) -> Self {
        Self {
            application: application(&rig.world).await,
            member: Mutex::new(rig.world.member().await),
        }
    }
}

async fn pair(world: &World, member: &Mutex<Member>, application: &Application) -> Pair {
    let mut member = member.lock().await;
    world.pair(&mut member.browser, application, "offers:read").await
}

/// An application of another owner.
async fn application(world: &World) -> Application {
    world.partner(&world.seller().await, &["offers:read"]).await
}

/// Whether the presented token was used already: by an earlier request of the same client whose process was
/// killed or which was overtaken. Only then may a client lose its family although it presents nothing twice
/// on purpose.
fn was_used<S>(played: &Played<'_, S>) -> bool {
    played.answer.status == 400 && matches!(played.fault, Some(Fault::ProcessDies | Fault::Waits))
}

/// Checks that the pair in an answer works, unless another request has used the presented token.
async fn pair_works<S>(world: &World, played: &Played<'_, S>) -> Verdict {
    if was_used(played) || played.fault == Some(Fault::Waits) {
        return Ok(());
    }
    if played.answer.status != 200 {
        return Err(format!("the family is lost: {:?}", played.answer));
    }
    works(world, &Pair::of(played.answer.clone()).access, true).await
}

async fn works(world: &World, access: &str, expected: bool) -> Verdict {
    let works = world.works(access).await;
    (works == expected)
        .then_some(())
        .ok_or_else(|| format!("that the token works is {works}"))
}

/// Each run has its own application and family, whose ids identify its request.
struct Refresh {
    member: Mutex<Member>,
    /// Its `Idempotency-Key`, under which a repeat gets the same pair.
    key: Option<&'static str>,
}

impl Refresh {
    async fn new(rig: &Rig, key: Option<&'static str>) -> Self {
        let member = Mutex::new(rig.world.member().await);
        Self { member, key }
    }
}

impl Case for Refresh {
    type Subject = (Application, Pair);

    /// The batch reads its families itself.
    const READS_OF_BATCH: usize = 1;

    /// The ids of the application and the family as they are stored.
    fn marks(&self, (application, pair): &(Application, Pair)) -> [Vec<u8>; 2] {
        let (_, id) = application.client_id.split_once('_').unwrap();
        let token = pair.refresh.splitn(3, '_').last().unwrap();
        let token = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap();
        [
            Uuid::try_parse(id).unwrap().into_bytes().to_vec(),
            token[..16].to_vec(),
        ]
    }

    async fn prepare(&self, world: &World) -> (Application, Pair) {
        let application = application(world).await;
        let pair = pair(world, &self.member, &application).await;
        (application, pair)
    }

    fn request(&self, world: &World, (application, pair): &(Application, Pair)) -> Request {
        let request = world.oauth_request(application, "token", &refreshing(&pair.refresh));
        match self.key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        }
    }

    async fn judge(&self, world: &World, played: &Played<'_, (Application, Pair)>) -> Verdict {
        if self.key.is_some() {
            return match played.answer.status {
                200 => works(world, &Pair::of(played.answer.clone()).access, true).await,
                _ => Err(format!("the pair is lost: {:?}", played.answer)),
            };
        }
        if was_used(played) {
            // The second use has revoked the family.
            works(world, &played.subject.1.access, false).await?;
        }
        pair_works(world, played).await
    }
}

struct Exchange(Connected);

impl Case for Exchange {
    type Subject = (Asking, String);

    async fn prepare(&self, world: &World) -> (Asking, String) {
        let asking = world.asking(&self.0.application, "offers:read");
        let code = world.code(&mut self.0.member.lock().await.browser, &asking).await;
        (asking, code)
    }

    fn request(&self, world: &World, (asking, code): &(Asking, String)) -> Request {
        world.oauth_request(&self.0.application, "token", &asking.exchanging(code))
    }

    async fn judge(&self, world: &World, played: &Played<'_, (Asking, String)>) -> Verdict {
        pair_works(world, played).await
    }
}

/// A seller's decision about an application's request.
struct Consent(Connected, &'static str);

impl Case for Consent {
    type Subject = (Asking, Form, Member);

    async fn prepare(&self, world: &World) -> (Asking, Form, Member) {
        let asking = world.asking(&self.0.application, "offers:read");
        let mut member = self.0.member.lock().await;
        let page = world.screen(&mut member.browser, &asking).await;
        let form = page.form("/panel/consent").press("decision", self.1);
        (asking, form, member.clone())
    }

    fn request(&self, world: &World, (_, form, member): &(Asking, Form, Member)) -> Request {
        let mut browser = world.visitor();
        browser.cookies.clone_from(&member.browser.cookies);
        browser.request(Method::POST, &form.action).form(&form.body())
    }

    async fn judge(&self, world: &World, played: &Played<'_, (Asking, Form, Member)>) -> Verdict {
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
        let asking = &played.subject.0;
        let answer = world.exchange(&self.0.application, asking, &back.code()).await;
        (answer.status == 200)
            .then_some(())
            .ok_or_else(|| format!("the code gets {answer:?}"))
    }
}

/// The revocation of an access token that has been used.
struct Revocation(Connected);

impl Case for Revocation {
    type Subject = Pair;

    async fn prepare(&self, world: &World) -> Pair {
        let pair = pair(world, &self.0.member, &self.0.application).await;
        assert!(world.works(&pair.access).await);
        pair
    }

    fn request(&self, world: &World, pair: &Pair) -> Request {
        world.oauth_request(&self.0.application, "revoke", &[("token", &pair.access)])
    }

    async fn judge(&self, world: &World, played: &Played<'_, Pair>) -> Verdict {
        match played.answer.status {
            200 => works(world, &played.subject.access, false).await,
            _ => Err(format!("{:?}", played.answer)),
        }
    }
}

struct ClientToken;

impl Case for ClientToken {
    type Subject = Application;

    async fn prepare(&self, world: &World) -> Application {
        world.application(&world.seller().await, &["offers:read"]).await
    }

    fn request(&self, world: &World, application: &Application) -> Request {
        world.oauth_request(application, "token", &[("grant_type", "client_credentials")])
    }

    async fn judge(&self, world: &World, played: &Played<'_, Application>) -> Verdict {
        if played.answer.status != 200 {
            return Err(format!("{:?}", played.answer));
        }
        works(world, &text(&played.answer.json(), "access_token"), true).await
    }
}

/// Requests of an application that gets no other requests.
struct Counting;

/// A separate token, the application, and the number of its requests that were counted.
struct Counted {
    token: String,
    application: Application,
    before: i64,
}

async fn counted(world: &World, application: &Application) -> i64 {
    let used = "select coalesce(sum(used), 0)::bigint from rate_windows where replace(subject::text, '-', '') = \
                split_part($1, '_', 2)";
    world.count(used, &[&application.client_id]).await
}

impl Case for Counting {
    type Subject = Counted;

    async fn prepare(&self, world: &World) -> Counted {
        let application = world.application(&world.seller().await, &["offers:read"]).await;
        Counted {
            token: world.token(&application).await,
            before: counted(world, &application).await,
            application,
        }
    }

    fn request(&self, world: &World, subject: &Counted) -> Request {
        world.client.get(&world.url("/v1/me")).bearer(&subject.token)
    }

    async fn judge(&self, world: &World, played: &Played<'_, Counted>) -> Verdict {
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

/// Several rigs at once, since a request mostly waits for its next statement.
#[tokio::test]
async fn a_token_is_issued_used_and_revoked_once() {
    tokio::join!(
        refreshes(),
        exchanges(None),
        exchanges(Some(ALONE)),
        consents_and_revocations()
    );
}

async fn refreshes() {
    let mut rig = Rig::new().await;
    let keyed = Refresh::new(&rig, Some("stored-before-the-call")).await;
    rig.check(&keyed)
        .await
        .expect("a refresh token is used under a key");
    let refresh = Refresh::new(&rig, None).await;
    rig.check(&refresh).await.expect("a refresh token is used");
    rig.check_against_rivals(&refresh)
        .await
        .expect("a refresh token is used twice at once");
    rig.check_batch(&refresh)
        .await
        .expect("several refresh tokens are used together");
}

async fn exchanges(rewrite: Option<Rewrite>) {
    let mut rig = Rig::with(rewrite, |options| options).await;
    let exchange = Exchange(Connected::new(&rig).await);
    rig.check(&exchange).await.expect("a code is exchanged");
    rig.check_against_rivals(&exchange)
        .await
        .expect("a code is exchanged twice at once");
    assert_eq!(rig.has_rewritten(), rewrite.is_some(), "exchanged alone");
}

async fn consents_and_revocations() {
    let mut rig = Rig::new().await;
    for decision in ["approve", "deny"] {
        let consent = Consent(Connected::new(&rig).await, decision);
        rig.check(&consent).await.expect(decision);
    }
    let revocation = Revocation(Connected::new(&rig).await);
    rig.check(&revocation).await.expect("a token is revoked");
    rig.check(&ClientToken).await.expect("a client gets a token");
    rig.check(&Counting).await.expect("a request is counted");
}
