//! Who the token endpoint believes to be which client.

use actix_web::http::header::AUTHORIZATION;
use oauth::ClientType;

use super::token_endpoint::{CLIENT, application, basic, by_basic, form, is, knowing, secret};

#[actix_web::test]
async fn a_client_that_does_not_prove_itself_is_invalid() {
    let grant = "grant_type=client_credentials";
    let right = secret();
    let right = right.reveal();
    let challenged = [
        by_basic(grant).insert_header(basic(CLIENT, "pss_wrong")),
        by_basic(grant).insert_header(basic(CLIENT, "")),
        by_basic(grant).insert_header(basic("psa_unknown", right)),
        by_basic(grant).insert_header(basic("", "")),
        by_basic(grant).insert_header((AUTHORIZATION, "Basic")),
        by_basic(grant).insert_header((AUTHORIZATION, "Basic !")),
        by_basic(grant).insert_header((AUTHORIZATION, "Basic bm9jb2xvbg==")),
        by_basic(grant).insert_header((AUTHORIZATION, "Basic //79")),
        by_basic(grant).insert_header((AUTHORIZATION, "Bearer x")),
        by_basic(grant).append_header(basic(CLIENT, right)),
    ];
    for request in challenged {
        let answered = knowing(application()).send(request).await;
        is(&answered, 401, "invalid_client");
        assert_eq!(answered.header("www-authenticate"), Some("Basic realm=\"Shop\""));
    }
    let unchallenged = [
        form(grant),
        form(&format!("{grant}&client_id={CLIENT}")),
        form(&format!("{grant}&client_secret={right}")),
        form(&format!("{grant}&client_id={CLIENT}&client_secret=pss_wrong")),
        form(&format!("{grant}&client_id=nobody&client_secret={right}")),
        form(grant).uri(&format!("/oauth/token?client_id={CLIENT}&client_secret={right}")),
    ];
    for request in unchallenged {
        let answered = knowing(application()).send(request).await;
        is(&answered, 401, "invalid_client");
        assert_eq!(answered.header("www-authenticate"), None);
    }
}

#[actix_web::test]
async fn basic_credentials_may_be_form_encoded() {
    let encoded = |text: &str| text.replace('_', "%5F").replace('-', "%2D");
    let header = basic(&encoded(CLIENT), &encoded(secret().reveal()));
    // The client is known; what it asks for lacks its code.
    let request = form("grant_type=authorization_code").insert_header(header);
    is(
        &knowing(application()).send(request).await,
        400,
        "invalid_request",
    );
    let header = basic(CLIENT, &format!("{}%", secret().reveal()));
    let request = form("grant_type=client_credentials").insert_header(header);
    is(&knowing(application()).send(request).await, 401, "invalid_client");
}

#[actix_web::test]
async fn credentials_are_sent_once() {
    let secret = secret();
    for body in [
        format!(
            "grant_type=client_credentials&client_id={CLIENT}&client_secret={}",
            secret.reveal()
        ),
        format!("grant_type=client_credentials&client_secret={}", secret.reveal()),
        "grant_type=client_credentials&client_id=psa_0000000000000000000000000000000c".to_owned(),
    ] {
        let answered = knowing(application()).send(by_basic(&body)).await;
        is(&answered, 400, "invalid_request");
    }
}

#[actix_web::test]
async fn a_public_client_has_no_credentials_of_its_own() {
    let mut public = application();
    public.client_type = ClientType::Public;
    public.secret = None;
    let grant = "grant_type=client_credentials";
    for request in [
        form(&format!("{grant}&client_id={CLIENT}")),
        form(&format!("{grant}&client_id={CLIENT}&client_secret=pss_x")),
        form(grant).insert_header(basic(CLIENT, "")),
    ] {
        is(
            &knowing(public.clone()).send(request).await,
            401,
            "invalid_client",
        );
    }
}
