//! Forms: what is let in is what a browser's own decoder makes of it, and reads the same when it is written again.

use url::form_urlencoded::{Serializer, parse};
use web::form::Form;

use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "forms",
    run,
    seeds: || {
        texts(&[
            "grant_type=client_credentials&client_id=psa_00000000000000000000000000000abc&client_secret=pss_x&scope=offers%3Aread+orders%3Aread",
            "a=%&b=%zz&c=%00",
            "x&x=&=y&&x=%2B+%C5%BC",
            "redirect_uris=https%3A%2F%2Fa%0D%0Ahttps%3A%2F%2Fb&scopes=a&scopes=b",
        ])
    },
    words: &["client_id=", "&scope=", "%2B", "+", "%C5", "%ff", "=="],
    grows: &[
        ("", "k#=1&", ""),
        ("a=", "+", ""),
        ("a=", "%41", ""),
        ("", "a&", ""),
        ("", "=", ""),
    ],
};

fn run(bytes: &[u8]) {
    let Ok(form) = Form::parse(bytes) else {
        return;
    };
    let pairs: Vec<_> = form.pairs().collect();
    assert!(
        pairs
            .iter()
            .all(|(name, value)| !name.contains('\0') && !value.contains('\0'))
    );
    let lenient: Vec<_> = parse(bytes).collect();
    assert_eq!(pairs.len(), lenient.len());
    for ((name, value), (as_name, as_value)) in pairs.iter().zip(&lenient) {
        assert_eq!((*name, *value), (as_name.as_ref(), as_value.as_ref()));
    }
    if let Some(name) = form.repeated() {
        assert!(pairs.iter().filter(|(other, _)| *other == name).count() > 1);
    }
    assert!(
        pairs
            .first()
            .is_none_or(|(name, value)| form.get(name) == Some(value))
    );
    let again = Serializer::new(String::new()).extend_pairs(&pairs).finish();
    let again = Form::parse(again.as_bytes()).expect("what is written can be read");
    // A pair without name and value is written as `=`, which is one again.
    assert_eq!(again, form);
}
