//! Compares the output of commands with what a page shows.
//!
//! The output must have the same fields and values. Values that differ between runs are compared by kind
//! only: UUIDs, times, and durations in fields named `…_ms`. `…` in a text matches anything; as the last item
//! of a list it matches any further items.

use std::collections::BTreeSet;

use serde_json::{Deserializer, Map, Value};

use crate::page::Shown;

const ANYTHING: &str = "…";
/// The forms of UUIDs and of times in the API's format.
const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
const TIME: &str = "dddd-dd-ddTdd:dd:dd.ddddddZ";

impl Shown {
    /// The difference between `printed` and the page; `None` if they match.
    pub(crate) fn differs_from(&self, printed: &str) -> Option<String> {
        let difference = match self {
            Self::Json(shown) => json(shown, printed),
            Self::Text(shown) => text(shown, printed),
        };
        difference.err()
    }
}

fn json(shown: &str, printed: &str) -> Result<(), String> {
    let (shown, came) = (values(shown, "the page shows")?, values(printed, "what came is")?);
    if shown.len() != came.len() {
        return Err(format!("{} values are shown, {} came", shown.len(), came.len()));
    }
    let mut both = shown.iter().zip(&came);
    both.try_for_each(|(shown, came)| same("$", shown, came))
}

fn values(text: &str, whose: &str) -> Result<Vec<Value>, String> {
    let values = Deserializer::from_str(text).into_iter().collect::<Result<_, _>>();
    values.map_err(|e| format!("{whose} not JSON: {e}"))
}

fn same(at: &str, shown: &Value, came: &Value) -> Result<(), String> {
    let differs = || Err(format!("{at} is shown as {shown} and came as {came}"));
    match (shown, came) {
        (Value::Object(shown), Value::Object(came)) => {
            let names = |fields: &Map<String, Value>| fields.keys().cloned().collect::<BTreeSet<_>>();
            if names(shown) != names(came) {
                let (shown, came) = (names(shown), names(came));
                return Err(format!("{at} is shown with {shown:?} and came with {came:?}"));
            }
            shown.iter().try_for_each(|(name, shown)| {
                let came = &came[name];
                if name.ends_with("_ms") && shown.is_u64() && came.is_u64() {
                    return Ok(());
                }
                same(&format!("{at}.{name}"), shown, came)
            })
        }
        (Value::Array(items), Value::Array(came)) => {
            let (items, is_open) = match items.split_last() {
                Some((last, items)) if last == ANYTHING => (items, true),
                _ => (items.as_slice(), false),
            };
            if came.len() < items.len() || (!is_open && came.len() > items.len()) {
                return differs();
            }
            let mut both = items.iter().zip(came).enumerate();
            both.try_for_each(|(n, (shown, came))| same(&format!("{at}[{n}]"), shown, came))
        }
        (Value::String(shown), Value::String(came)) if alike(shown, came) => Ok(()),
        _ if shown == came => Ok(()),
        _ => differs(),
    }
}

fn text(shown: &str, printed: &str) -> Result<(), String> {
    let (mut shown, mut came) = (shown.trim_end().lines(), printed.trim_end().lines());
    loop {
        match (shown.next(), came.next().map(str::trim_end)) {
            (None, None) => return Ok(()),
            (Some(shown), Some(came)) if alike(shown, came) => {}
            (shown, came) => return Err(format!("{shown:?} is shown and {came:?} came")),
        }
    }
}

fn alike(shown: &str, printed: &str) -> bool {
    for form in [UUID, TIME] {
        if has_form(shown, form) {
            return has_form(printed, form);
        }
    }
    let (first, rest) = shown.split_once(ANYTHING).unwrap_or((shown, ""));
    let Some(mut behind) = printed.strip_prefix(first) else {
        return false;
    };
    if first.len() == shown.len() {
        return behind.is_empty();
    }
    let (middle, last) = rest.rsplit_once(ANYTHING).unwrap_or(("", rest));
    for part in middle.split(ANYTHING) {
        let Some((_, after)) = behind.split_once(part) else {
            return false;
        };
        behind = after;
    }
    behind.ends_with(last)
}

fn has_form(text: &str, form: &str) -> bool {
    let mut both = text.chars().zip(form.chars());
    text.len() == form.len()
        && both.all(|(c, form)| match form {
            'd' => c.is_ascii_digit(),
            'x' => matches!(c, '0'..='9' | 'a'..='f'),
            _ => c == form,
        })
}
