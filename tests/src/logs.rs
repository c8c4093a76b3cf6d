//! Reads the program's log: one JSON object per line.

use serde_json::Value;

/// All events of a JSON log. A line that is not JSON fails the test.
pub fn events(log: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}): {line}"));
    log.lines()
        .filter(|line| !line.trim().is_empty())
        .map(parse)
        .collect()
}

/// The fields of all request events, in order.
pub fn requests(log: &str) -> Vec<Value> {
    let fields = |event: &Value| event["fields"].clone();
    events(log)
        .iter()
        .filter(|event| event["target"] == "access")
        .map(fields)
        .collect()
}

/// Whether the log has a request event with this trace id.
pub fn logs_request(log: &str, trace_id: &str) -> bool {
    let mut lines = log.lines().filter(|line| line.contains(trace_id));
    lines.any(|line| {
        requests(line)
            .iter()
            .any(|request| request["trace_id"] == trace_id)
    })
}

/// Panics if a text contains anything that looks like one of the product's secrets.
#[track_caller]
pub fn assert_no_secret(text: &str) {
    for prefix in [
        "ps_wh_", "whsec_", "ps_at_", "ps_pt_", "ps_op_", "ps_rt_", "ps_ac_", "ps_se_", "ps_ln_", "pss_",
    ] {
        for (start, _) in text.match_indices(prefix) {
            let secret = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let length = text[start + prefix.len()..].chars().take_while(secret).count();
            assert!(
                length < 16,
                "a secret is in the log: …{}…",
                &text[start..start + prefix.len() + 4]
            );
        }
    }
}
