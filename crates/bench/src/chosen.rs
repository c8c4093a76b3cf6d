//! The subjects that the command line names.

use anyhow::bail;

use crate::cluster::Cluster;
use crate::measure::Subject;
use crate::options::StandOptions;
use crate::progress::Progress;
use crate::read::subjects;
use crate::stand::Stand;
use crate::{tokens, write};

/// All that can be named on a stand: of reading, of tokens and, where there are to be orders, of writing.
pub(crate) async fn all_on<'a>(
    options: &StandOptions,
    cluster: &Cluster,
    stand: &'a Stand,
    orders: u64,
    progress: Progress,
) -> anyhow::Result<Vec<Subject<'a>>> {
    let mut all = subjects::of(options, stand).await?;
    all.extend(tokens::subjects_on(options, cluster, stand).await?);
    if orders > 0 {
        all.extend(write::subjects_on(options, cluster, stand, orders, progress).await?);
    }
    Ok(all)
}

/// Those whose keys are named, or all where none is. A name that none of them has is an error, which names those that there are.
pub(crate) fn chosen<'a>(mut all: Vec<Subject<'a>>, named: &[String]) -> anyhow::Result<Vec<Subject<'a>>> {
    let known: Vec<_> = all.iter().map(|subject| subject.key).collect();
    if let Some(unknown) = named.iter().find(|name| !known.contains(&name.as_str())) {
        bail!(
            "there is no subject `{unknown}` here; there are {}",
            known.join(", ")
        );
    }
    all.retain(|subject| named.is_empty() || named.iter().any(|name| name == subject.key));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::Work;
    use crate::pgbench::Script;

    fn chosen_by(named: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        let subject = |key| Subject {
            key,
            title: String::new(),
            work: Work::Pgbench(
                Script {
                    database: String::new(),
                    text: String::new(),
                },
                1,
                Duration::ZERO,
            ),
            looked_at: None,
        };
        let named: Vec<_> = named.iter().map(|&name| name.to_owned()).collect();
        let chosen = chosen(["row", "offer", "page"].map(subject).into(), &named)?;
        Ok(chosen.iter().map(|subject| subject.key).collect())
    }

    #[test]
    fn those_named_are_measured_and_all_where_none_is() {
        assert_eq!(chosen_by(&["page", "row"]).unwrap(), ["row", "page"]);
        assert_eq!(chosen_by(&[]).unwrap(), ["row", "offer", "page"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_list_of_those_that_there_are() {
        let error = chosen_by(&["row", "rows"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no subject `rows` here; there are row, offer, page"
        );
    }
}
