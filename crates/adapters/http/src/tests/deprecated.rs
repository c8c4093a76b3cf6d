//! What goes away: declared by operations of these tests alone, told by answers, the document and the changelog.

use actix_web::FromRequest;
use actix_web::body::to_bytes;
use actix_web::http::header::USER_AGENT;
use actix_web::http::{Method, StatusCode};
use actix_web::test::TestRequest;
use actix_web::web::Payload;
use chrono::DateTime;
use oauth::Scope;
use serde_json::{Value, json};
use web::Violations;
use web::deprecation::{Deprecation, day};
use web::query;
use web::schema::{Node, object, string};

use super::fixture::{Answered, Fixture, good, principal};
use super::token_endpoint::{application, form, knowing};
use crate::declared::{Declared, Parameter, Success, Tag};
use crate::deprecated::{Ending, endpoints_going, going};
use crate::listener::Listener;
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;
use crate::routes::{Route, TABLE};
use crate::{authorization_server, document};

const OPERATION: Deprecation = Deprecation {
    since: day(2027, 1, 15),
    sunset: Some(day(2027, 7, 15)),
    instead: "Use `GET /v1/kettles`.",
    link: Some("/docs/kettles"),
};
const PARAMETER: Deprecation = Deprecation {
    since: day(2026, 12, 1),
    sunset: None,
    instead: "Use `size`.",
    link: None,
};
const FIELD: Deprecation = Deprecation {
    since: day(2027, 2, 1),
    sunset: Some(day(2027, 8, 1)),
    instead: "Read `maker`.",
    link: Some("https://docs.shop.example/maker"),
};

static GOING: &[Route] = &[Route::reads::<OldPots>(), Route::reads::<Pots>()];
/// The endpoints that go away in these tests.
const ENDING: [Ending; 2] = [
    ("revokeToken", &OPERATION),
    ("getAuthorizationServerMetadata", &PARAMETER),
];

fn pots() -> Node {
    let brand = string().said("Who made it.").deprecated(&FIELD);
    object(&[("brand", brand)]).named("Pots")
}

const fn json_of(schema: fn() -> Node) -> Success {
    Success::Json {
        status: StatusCode::OK,
        description: "Pots.",
        schema,
        example: || Node::of([("brand", "Kettles & Co".into())]),
    }
}

fn answer() -> Result<Reply, Refusal> {
    Reply::ok(&json!({"brand": "Kettles & Co"}), 32)
}

/// It goes away itself.
struct OldPots;

impl Operation for OldPots {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/old-pots";
    const SCOPE: Option<Scope> = Some(Scope::OffersRead);
    const PARAMETERS: &'static [&'static str] = &[];
    const FIELDS: &'static [&'static str] = &["brand"];
    const DECLARED: &'static Declared = &Declared {
        id: "listOldPots",
        tag: Tag::Offers,
        summary: "List pots",
        description: "All of them.",
        resource: None,
        parameters: &[],
        body: None,
        success: json_of(|| object(&[("brand", string())]).named("OldPots")),
        deprecated: Some(&OPERATION),
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |_| Self)
    }
}

impl Read for OldPots {
    async fn execute(self, _: Context) -> Result<Reply, Refusal> {
        answer()
    }
}

/// A parameter and a field of it go away.
struct Pots;

impl Operation for Pots {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/pots";
    const SCOPE: Option<Scope> = None;
    const PARAMETERS: &'static [&'static str] = &["litres"];
    const FIELDS: &'static [&'static str] = &["brand"];
    const DECLARED: &'static Declared = &Declared {
        id: "listPots",
        tag: Tag::Offers,
        summary: "List pots",
        description: "All of them.",
        resource: None,
        parameters: &[Parameter {
            name: "litres",
            description: "How large.",
            schema: string,
            deprecated: Some(&PARAMETER),
        }],
        body: None,
        success: json_of(pots),
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| {
            query.text("litres");
            Self
        })
    }
}

impl Read for Pots {
    async fn execute(self, _: Context) -> Result<Reply, Refusal> {
        answer()
    }
}

/// What the listener answers where these are its operations.
async fn ask(fixture: Fixture, request: TestRequest) -> Answered {
    let listener = Listener::over(GOING, &ENDING, fixture.public());
    let (request, mut payload) = request.to_http_parts();
    let payload = Payload::from_request(&request, &mut payload).await.unwrap();
    let response = listener.serve(request, payload).await;
    Answered {
        status: response.status(),
        headers: response.headers().clone(),
        bytes: to_bytes(response.into_body()).await.unwrap(),
    }
}

#[track_caller]
fn tells(answered: &Answered, deprecation: Option<&str>, sunset: Option<&str>, links: &[&str]) {
    assert_eq!(answered.header("deprecation"), deprecation);
    assert_eq!(answered.header("sunset"), sunset);
    let told: Vec<_> = answered
        .headers
        .get_all("link")
        .map(|link| link.to_str().unwrap())
        .collect();
    assert_eq!(told, links);
}

#[actix_web::test]
async fn a_deprecated_operation_says_so_in_every_answer() {
    let is_told = |answered: &Answered, status: u16| {
        assert_eq!(answered.status, status, "{}", answered.text());
        let links = [
            "</docs/kettles>; rel=\"deprecation\"",
            "</docs/kettles>; rel=\"sunset\"",
        ];
        let sunset = Some("Thu, 15 Jul 2027 00:00:00 GMT");
        tells(answered, Some("@1799971200"), sunset, &links);
    };
    let admitting = || Fixture::admitting(principal());
    is_told(&ask(admitting(), good("/v1/old-pots")).await, 200);
    is_told(
        &ask(admitting(), good("/v1/old-pots").method(Method::HEAD)).await,
        200,
    );
    is_told(&ask(admitting(), good("/v1/old-pots?colour=red")).await, 400);
    let nobody = || TestRequest::get().uri("/v1/old-pots");
    is_told(&ask(Fixture::new(), nobody()).await, 400);
    is_told(
        &ask(Fixture::new(), nobody().insert_header((USER_AGENT, "Tests/1"))).await,
        401,
    );
    is_told(
        &ask(Fixture::at_place(principal(), 601), good("/v1/old-pots")).await,
        429,
    );
    for elsewhere in [good("/v1/nothing"), good("/v1/old-pots").method(Method::POST)] {
        let answered = ask(admitting(), elsewhere).await;
        assert_eq!(answered.status, 404);
        tells(&answered, None, None, &[]);
    }
}

#[actix_web::test]
async fn a_deprecated_endpoint_of_the_authorization_server_says_so_too() {
    let refused = || form("token=x").uri("/oauth/revoke");
    let answered = ask(knowing(application()), refused()).await;
    assert_eq!(answered.status, 401, "{}", answered.text());
    let links = [
        "</docs/kettles>; rel=\"deprecation\"",
        "</docs/kettles>; rel=\"sunset\"",
    ];
    let sunset = Some("Thu, 15 Jul 2027 00:00:00 GMT");
    tells(&answered, Some("@1799971200"), sunset, &links);
    let metadata = TestRequest::get().uri("/.well-known/oauth-authorization-server");
    let answered = ask(Fixture::new(), metadata).await;
    assert_eq!(answered.status, 200);
    tells(&answered, Some("@1796083200"), None, &[]);
    for elsewhere in [refused().method(Method::GET), refused().uri("/oauth/token")] {
        let answered = ask(knowing(application()), elsewhere).await;
        tells(&answered, None, None, &[]);
    }
}

#[actix_web::test]
async fn a_deprecated_field_is_told_of_by_the_operations_that_show_it() {
    let answered = ask(Fixture::admitting(principal()), good("/v1/pots")).await;
    let links = [
        "<https://docs.shop.example/maker>; rel=\"deprecation\"",
        "<https://docs.shop.example/maker>; rel=\"sunset\"",
    ];
    let sunset = Some("Sun, 01 Aug 2027 00:00:00 GMT");
    tells(&answered, Some("@1801440000"), sunset, &links);
}

#[actix_web::test]
async fn a_deprecated_parameter_is_told_of_to_those_who_send_it() {
    for query in ["litres=2", "litres", "%6Citres=2", "litres=2&litres=3"] {
        let url = format!("/v1/pots?{query}");
        let answered = ask(Fixture::admitting(principal()), good(&url)).await;
        assert_eq!(answered.header("deprecation"), Some("@1796083200"), "{query}");
    }
    for query in ["litre=litres", "%zz=litres", "&"] {
        let url = format!("/v1/pots?{query}");
        let answered = ask(Fixture::admitting(principal()), good(&url)).await;
        assert_eq!(answered.header("deprecation"), Some("@1801440000"), "{query}");
    }
}

#[actix_web::test]
async fn nothing_of_the_api_is_deprecated_today() {
    let answered = Fixture::admitting(principal()).get("/v1/me").await;
    assert_eq!(answered.status, 200);
    tells(&answered, None, None, &[]);
}

#[test]
fn the_document_marks_what_goes_away() {
    let (document, _) = document::document(
        GOING,
        &ENDING,
        "https://api.shop.example",
        "https://docs.shop.example",
    );
    let document: Value = serde_json::from_str(&document.to_string()).unwrap();
    let marked = |pointer: &str, description: &str| {
        let node = document.pointer(pointer).unwrap();
        assert_eq!(node["deprecated"], true, "{node}");
        assert_eq!(node["description"], description);
    };
    marked(
        "/paths/~1v1~1old-pots/get",
        "All of them. **Deprecated** since 2027-01-15, gone on 2027-07-15. Use `GET /v1/kettles`. More: </docs/kettles>",
    );
    marked(
        "/paths/~1v1~1pots/get/parameters/2",
        "How large. **Deprecated** since 2026-12-01. Use `size`.",
    );
    marked(
        "/components/schemas/Pots/properties/brand",
        "Who made it. **Deprecated** since 2027-02-01, gone on 2027-08-01. Read `maker`. More: \
         <https://docs.shop.example/maker>",
    );
    let revocation = &document["paths"]["/oauth/revoke"]["post"];
    assert_eq!(revocation["deprecated"], true);
    let said = revocation["description"].as_str().unwrap();
    assert!(
        said.contains(" **Deprecated** since 2027-01-15, gone on 2027-07-15."),
        "{said}"
    );
    for untouched in ["/paths/~1v1~1pots/get", "/paths/~1oauth~1token/post"] {
        assert!(document.pointer(untouched).unwrap().get("deprecated").is_none());
    }
}

/// What goes away and has no item under `Deprecated` in a changelog: one that names it in backticks and has its dates.
fn unannounced(changelog: &str, table: &[Route], ending: &[Ending]) -> Vec<String> {
    let sections = changelog.split("\n### Deprecated\n").skip(1);
    let section = |text: &str| text.split("\n#").next().unwrap_or_default().to_owned();
    let listed: Vec<_> = sections.map(section).collect();
    let items: Vec<_> = listed.iter().flat_map(|section| section.split("\n- ")).collect();
    let is_announced = |what: &str, notice: &Deprecation| {
        let date = |at: DateTime<_>| at.date_naive().to_string();
        let dates = [Some(notice.since), notice.sunset]
            .into_iter()
            .flatten()
            .map(date);
        let needed: Vec<_> = dates.chain([format!("`{what}`")]).collect();
        items
            .iter()
            .any(|item| needed.iter().all(|word| item.contains(word.as_str())))
    };
    let mut missing: Vec<_> = table
        .iter()
        .flat_map(going)
        .chain(endpoints_going(ending).flat_map(|(_, going)| going))
        .filter(|going| !is_announced(&going.what, going.notice))
        .map(|going| going.what)
        .collect();
    missing.dedup();
    missing
}

#[test]
fn the_changelog_tells_of_what_goes_away() {
    let changelog = include_str!("../../../../../docs/CHANGELOG.md");
    assert_eq!(
        unannounced(changelog, TABLE, authorization_server::ENDING),
        Vec::<String>::new()
    );
}

#[test]
fn an_item_of_the_changelog_names_the_thing_and_its_dates() {
    let all = [
        "GET /v1/old-pots",
        "litres of GET /v1/pots",
        "Pots.brand",
        "POST /oauth/revoke",
    ];
    let ending = &ENDING[..1];
    assert_eq!(unannounced("# Changelog\n", GOING, ending), all);
    let good = "# Changelog\n\n## [Unreleased]\n\n### Deprecated\n\n\
                - `GET /v1/old-pots` since 2027-01-15, gone on 2027-07-15.\n\
                - `litres of GET /v1/pots` since\n  2026-12-01.\n\
                - `Pots.brand` since 2027-02-01, gone on 2027-08-01.\n\
                - `POST /oauth/revoke` since 2027-01-15, gone on 2027-07-15.\n\n### Fixed\n";
    assert_eq!(unannounced(good, GOING, ending), Vec::<String>::new());
    let late = good.replace("2027-08-01", "2027-09-01");
    assert_eq!(unannounced(&late, GOING, ending), ["Pots.brand"]);
    let elsewhere = good.replace("### Deprecated", "### Changed");
    assert_eq!(unannounced(&elsewhere, GOING, ending), all);
}
