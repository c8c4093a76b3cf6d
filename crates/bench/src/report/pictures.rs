//! Plots of what the rounds measured.

use crate::figures::{ratio_spread, whole};
use crate::plot::{Bar, Part, Plot, bars};
use crate::rounds::Measured;

use super::subjects::find;

/// Rates over those of what stands beside them: a bar for each subject that is not itself such a base. `goal_of` gives the
/// ratio that a subject is to reach.
pub(crate) fn ratios(
    name: &'static str,
    title: &str,
    measured: &[Measured],
    base_of: impl Fn(&str) -> &'static str,
    goal_of: impl Fn(&str) -> Option<f64>,
) -> anyhow::Result<Plot> {
    let mut all = Vec::new();
    for subject in measured {
        let base = find(measured, base_of(subject.key))?;
        if base.key == subject.key {
            continue;
        }
        let ratio = subject.ratio_to(base);
        all.push(Bar {
            name: plain(&subject.title),
            parts: vec![Part {
                value: ratio.median,
                spread: Some((ratio.min, ratio.max)),
            }],
            goal: goal_of(subject.key),
            text: ratio_spread(ratio),
        });
    }
    let svg = bars(&format!("{title}; the marks are the goals"), &[], &all);
    Ok(Plot {
        name,
        says: format!("{title}: the table above, drawn"),
        svg,
    })
}

/// What a request costs each process.
pub(crate) fn costs(name: &'static str, title: &str, measured: &[Measured]) -> Plot {
    let bar = |subject: &Measured| {
        let [postgres, server, client] = [
            subject.middle(|sample| sample.cpu.postgres),
            subject.middle(|sample| sample.cpu.server),
            subject.middle(|sample| sample.cpu.client),
        ];
        let part = |value| Part { value, spread: None };
        Bar {
            name: plain(&subject.title),
            parts: vec![part(postgres), part(server), part(client)],
            goal: None,
            text: format!("{} µs", whole(postgres + server + client)),
        }
    };
    let all: Vec<_> = measured.iter().map(bar).collect();
    Plot {
        name,
        says: format!("{title}: the table above, drawn"),
        svg: bars(
            title,
            &["PostgreSQL", "server", "load generator or pgbench"],
            &all,
        ),
    }
}

/// A title without what marks code.
pub(crate) fn plain(title: &str) -> String {
    title.replace('`', "")
}
