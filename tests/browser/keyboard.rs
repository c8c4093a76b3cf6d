//! Keyboard operation: Tab reaches everything on a page in order, and the focus is visible.

use serde_json::json;

use crate::driver::Session;

const WALK: &str = concat!(include_str!("colours.js"), include_str!("keyboard.js"));
/// The most tab stops within one field: those of a date.
const WITHIN: usize = 6;
/// Minimum contrast of a focus ring with its background (WCAG 2.2 §1.4.11).
const RING: f64 = 3.0;

/// Presses a key: `Tab`, `Enter`, or one that types its own character.
pub(crate) async fn press(browser: &Session, key: &str, with_shift: bool) {
    let (code, text) = match key {
        "Tab" => (9, ""),
        "Enter" => (13, "\r"),
        typed => (u32::from(typed.as_bytes()[0]), typed),
    };
    for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
        let modifiers = if with_shift { 8 } else { 0 };
        let event = json!({
            "type": kind, "key": key, "text": if kind == "keyDown" { text } else { "" },
            "windowsVirtualKeyCode": code, "modifiers": modifiers,
        });
        browser.devtools("Input.dispatchKeyEvent", event).await;
    }
}

/// Goes to the next tab stop and returns its faults.
async fn step(browser: &Session, from: i64, backwards: bool) -> Vec<String> {
    let to = if backwards { from - 1 } else { from + 1 };
    for _ in 0..WITHIN {
        press(browser, "Tab", backwards).await;
        let stop = browser.call(WALK, json!(["look"])).await;
        let number = stop["number"].as_i64().unwrap();
        if number == from {
            continue;
        }
        let mut faults = Vec::new();
        let what = &stop["what"];
        if number != to {
            faults.push(format!("Tab reaches {number} instead of {to}: {what}"));
        }
        let contrast = stop["contrast"].as_f64().unwrap();
        if contrast < RING {
            faults.push(format!("ring {contrast:.2}: {what}"));
        }
        if stop["seen"] != json!(true) {
            faults.push(format!("the focus is out of sight: {what}"));
        }
        return faults;
    }
    vec![format!("Tab does not leave {from}")]
}

/// Tabs through the page and returns all faults.
pub(crate) async fn walk(browser: &Session) -> Vec<String> {
    let stops = browser.call(WALK, json!(["begin"])).await.as_i64().unwrap();
    assert!(stops > 1, "{}", browser.source().await);
    let mut faults = step(browser, 0, false).await;
    // The script has focused the first stop; the keyboard must reach it too.
    faults.extend(step(browser, 1, true).await);
    for from in 0..stops - 1 {
        faults.extend(step(browser, from, false).await);
    }
    faults
}
