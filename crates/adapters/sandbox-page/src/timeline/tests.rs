//! What is kept, hidden and found.

use chrono::TimeDelta;
use uuid::Uuid;

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn row(kind: Kind, seconds: i64, title: &str, ids: &[&str]) -> Row {
    Row {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..Row::new(kind, at(seconds), title)
    }
}

fn write(seconds: i64, trace: &str, ids: &[&str]) -> Row {
    Row {
        trace_id: Some(trace.to_owned()),
        is_write: true,
        ..row(Kind::Request, seconds, trace, ids)
    }
}

fn titles(timeline: &Timeline, query: &Form) -> Vec<String> {
    let rows = timeline.rows(query).unwrap();
    rows.iter().map(|row| row.title.clone()).collect()
}

fn recorded(row: Row) -> Row {
    let timeline = Timeline::default();
    timeline.record(row);
    Row::clone(&timeline.rows(&Form::default()).unwrap()[0])
}

#[test]
fn the_newest_rows_are_kept() {
    let timeline = Timeline::default();
    for n in 1..=2_001 {
        timeline.record(row(Kind::Event, n, &n.to_string(), &[]));
    }
    let kept = titles(&timeline, &Form::default());
    assert_eq!(
        (kept.len(), kept[0].as_str(), kept[1_999].as_str()),
        (2_000, "2001", "2")
    );
    assert_eq!(*timeline.last().borrow(), 2_001);
    assert_eq!(
        timeline.rows(&Form::parse(b"before=5").unwrap()).unwrap().len(),
        3
    );
}

#[test]
fn rows_take_16_mb_at_most() {
    let timeline = Timeline::default();
    for n in 0..400 {
        timeline.record(Row {
            sellers: vec![Uuid::nil().into(); 6_250],
            ..row(Kind::Event, n, "", &[])
        });
    }
    let kept = timeline.rows(&Form::default()).unwrap();
    let bytes: usize = kept.iter().map(|row| row.bytes).sum();
    assert!((100..=167).contains(&kept.len()), "{}", kept.len());
    assert!(bytes <= MOST_BYTES && bytes == timeline.kept.lock().bytes);
}

#[test]
fn bodies_are_cut_between_characters() {
    let kept = "ż".repeat(2_048);
    assert_eq!(Row::text("ż".repeat(5_000).as_bytes()), format!("{kept}…"));
    assert_eq!(Row::text(kept.as_bytes()), kept);
    assert_eq!(Row::text(b"a\xff"), "a\u{fffd}");
}

#[test]
fn secrets_are_hidden() {
    for (text, shown) in [
        (
            r#"{"access_token": "a\"b", "scope":"x"}"#,
            r#"{"access_token": "•••", "scope":"x"}"#,
        ),
        (
            r#"{"errors": [{"code":"not_found"}], "token": {"id":1.50}}"#,
            r#"{"errors": [{"code":"not_found"}], "token": {"id":1.50}}"#,
        ),
        (r#"{"a":"password","b":"c"}"#, r#"{"a":"password","b":"c"}"#),
        // Cut, or broken.
        (r#"[{"client_secret":"abc…"#, r#"[{"client_secret":"•••"#),
        (r#"{"a":"ps_pt_x","b":}"#, r#"{"a":"•••","b":}"#),
        (
            r#"{"url":"http://h/panel/sign-in/ps_ln_AbC-_9?next=/panel"}"#,
            r#"{"url":"http://h/panel/sign-in/•••?next=/panel"}"#,
        ),
        (
            r#"{"redirect":"https://h/back?code=xyz","scope":"x"}"#,
            r#"{"redirect":"https://h/back?code=•••","scope":"x"}"#,
        ),
        (
            "grant_type=authorization_code&code=xyz&code_verifier=v&client_id=psa_1",
            "grant_type=authorization_code&code=•••&code_verifier=•••&client_id=psa_1",
        ),
        ("GET /back?code=xyz&state=s", "GET /back?code=•••&state=s"),
        ("email=a%40b&password=p%26q", "email=a%40b&password=•••"),
        ("password=a,b]&email=c", "password=•••&email=c"),
        ("whsec_aB+/= pss_x, ps_pt_y", "••• •••, •••"),
        (
            "order.paid → http://127.0.0.1:9000",
            "order.paid → http://127.0.0.1:9000",
        ),
    ] {
        assert_eq!(recorded(row(Kind::Event, 0, text, &[])).title, shown);
    }
    let secret = "ps_at_1";
    let kept = recorded(Row {
        outcome: secret.to_owned(),
        body: secret.to_owned(),
        answer: secret.to_owned(),
        ..row(Kind::Request, 0, secret, &[secret])
    });
    assert!(!format!("{kept:?}").contains(secret), "{kept:?}");
}

#[test]
fn a_trace_leads_to_what_came_of_it_until_the_next_write() {
    let timeline = Timeline::default();
    timeline.record(row(Kind::Event, 9, "earlier", &["order"]));
    timeline.record(write(10, "pay", &["order", "NO-1"]));
    timeline.record(Row {
        is_write: false,
        ..write(11, "refused", &["order"])
    });
    timeline.record(row(Kind::Event, 11, "paid", &["order"]));
    timeline.record(row(Kind::Event, 12, "of another", &["other"]));
    timeline.record(row(Kind::Mail, 13, "mail", &["NO-1"]));
    timeline.record(write(20, "ship", &["order"]));
    timeline.record(row(Kind::Mail, 22, "shipment mail", &["order", "NO-1"]));
    timeline.record(row(Kind::Event, 21, "shipped", &["order"]));
    // Delivered late: its event came of the payment.
    let attempt = |seconds, title| Row {
        caused_at: at(11),
        delivery: Some("delivery".to_owned()),
        ..row(Kind::Attempt, seconds, title, &["order", "delivery"])
    };
    timeline.record(attempt(30, "attempt"));
    timeline.record(write(40, "redeliver", &["subscription", "delivery"]));
    timeline.record(attempt(41, "next attempt"));
    let of = |trace: &str| {
        let query = format!("trace={trace}");
        titles(&timeline, &Form::parse(query.as_bytes()).unwrap())
    };
    assert_eq!(of("pay"), ["next attempt", "attempt", "mail", "paid", "pay"]);
    assert_eq!(of("ship"), ["shipped", "shipment mail", "ship"]);
    assert_eq!(of("redeliver"), ["next attempt", "redeliver"]);
    assert_eq!(of("refused"), ["refused"]);
    assert!(of("unknown").is_empty());
}

#[test]
fn filters_narrow_each_other() {
    let seller = SellerId::from(Uuid::from_u128(1));
    let timeline = Timeline::default();
    timeline.record(Row {
        seller: Some(seller),
        ..row(Kind::Event, 0, "event", &["order"])
    });
    timeline.record(Row {
        seller: Some(seller),
        application: Some("psa_1".to_owned()),
        ..row(Kind::Attempt, 0, "attempt", &["order"])
    });
    timeline.record(row(Kind::Change, 0, "change", &["psa_1"]));
    timeline.record(Row {
        sellers: vec![SellerId::from(Uuid::from_u128(2))],
        ..row(Kind::Request, 0, "placed", &[])
    });
    let of = |query: &str| titles(&timeline, &Form::parse(query.as_bytes()).unwrap());
    assert_eq!(of(""), ["placed", "change", "attempt", "event"]);
    assert_eq!(of(&format!("seller={}", Uuid::from_u128(2))), ["placed"]);
    assert_eq!(of(&format!("seller={seller}")), ["attempt", "event"]);
    assert_eq!(of("about=+order+&kind=event"), ["event"]);
    // A mail has no seller, and some rows have an order's id or its number alone.
    let order = &["order", "NO-1"];
    timeline.record(Row {
        seller: Some(seller),
        ..row(Kind::Event, 0, "numbered", order)
    });
    timeline.record(row(Kind::Mail, 0, "mail", &["NO-1"]));
    assert_eq!(of(&format!("seller={seller}&kind=mail")), ["mail"]);
    assert_eq!(of("about=NO-1"), ["mail", "numbered", "attempt", "event"]);
    assert_eq!(of("application=psa_1"), ["change", "attempt"]);
}

#[test]
fn a_filter_that_no_row_can_have_is_refused() {
    for (query, named) in [
        ("kind=webhook", "request, event, attempt, mail, change"),
        ("seller=nobody", "a seller's id"),
    ] {
        let query = Form::parse(query.as_bytes()).unwrap();
        let refused = Timeline::default().rows(&query).unwrap_err();
        assert!(format!("{refused:?}").contains(named), "{refused:?}");
    }
}
