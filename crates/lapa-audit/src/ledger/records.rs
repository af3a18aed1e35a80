//! Entries of the ledger, compared with the received updates and the configuration.

use std::collections::HashMap;

use lapa::config::Experiment;
use lapa_privacy::ledger::Entry;
use lapa_privacy::{Event, Release};

/// The updates on the ledger, by device, in the order of the rounds; and whether any went out
/// without noise.
pub(crate) fn update_releases(recorded: &[Entry], devices: usize) -> (Vec<Vec<Release>>, bool) {
    let mut releases = vec![Vec::new(); devices];
    let mut unprotected = false;
    for one in recorded {
        match &one.event {
            Event::Release(release) => releases[one.device as usize].push(release.clone()),
            Event::NonPrivate { .. } => unprotected = true,
            Event::Histogram(_) => {}
        }
    }
    (releases, unprotected)
}

/// Everything on the ledger that is not as it was heard, or not as it was configured.
pub(crate) fn disagreements(
    experiment: &Experiment,
    public_samples: &[u32],
    recorded: &[Entry],
    heard: &[(u32, u32)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut on_record: HashMap<(u32, u32), u32> = HashMap::new();
    for one in recorded.iter().filter(|one| !matches!(one.event, Event::Histogram(_))) {
        *on_record.entry((one.round, one.device)).or_default() += 1;
    }
    for place @ (round, device) in heard {
        let times = on_record.remove(place).unwrap_or_default();
        if times != 1 {
            wrong.push(format!(
                "round {round}, device {device}: one update was received, but the ledger has {times} \
                 releases"
            ));
        }
    }
    // In a simulation all that is sent arrives.
    let mut unheard: Vec<_> = on_record.into_keys().filter(|&(round, _)| round > 0).collect();
    unheard.sort_unstable();
    for (round, device) in unheard {
        wrong.push(format!(
            "round {round}, device {device}: the ledger has a release, but nothing was received"
        ));
    }
    let learn = &experiment.learn;
    for one in recorded {
        let Event::Release(release) = &one.event else { continue };
        let public = public_samples[one.device as usize];
        let denominator = learn.sampling.denominator(learn.batch_fraction, public);
        let agrees = release.denominator == denominator
            && release.sampling == learn.sampling.declared(learn.batch_fraction)
            && Some(release.clip_norm) == learn.clip_norm
            && release.adjacency == experiment.adjacency();
        if !agrees {
            wrong.push(format!(
                "round {}, device {}: the recorded release has another batch, clip or adjacency than \
                 the configuration",
                one.round, one.device
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(round: u32, device: u32) -> Entry {
        Entry {
            run: "run".into(),
            data: "data".into(),
            partition: "partition".into(),
            round,
            device,
            attempt: 1,
            event: Event::NonPrivate { what: "test".into() },
            granted: 1.0,
            cost: f64::INFINITY,
        }
    }

    #[test]
    fn each_update_has_one_release_and_each_release_its_update() {
        let wrong = |recorded: &[Entry], heard: &[(u32, u32)]| {
            disagreements(&Experiment::default(), &[10, 10], recorded, heard)
        };
        let both = [recorded(1, 0), recorded(1, 1)];
        assert!(wrong(&both, &[(1, 0), (1, 1)]).is_empty());
        assert!(wrong(&both, &[(1, 0)])[0].contains("nothing was received"));
        assert!(wrong(&both, &[(1, 0), (1, 1), (2, 0)])[0].contains("0 releases"));
        let twice = [recorded(1, 0), recorded(1, 0)];
        assert!(wrong(&twice, &[(1, 0)])[0].contains("2 releases"));
    }
}
