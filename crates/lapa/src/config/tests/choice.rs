//! Choices with tables, sections that may be absent, and keys with other names.

use super::{flags_refuse, read, refuses, with_flags};
use crate::config::moved::MOVED;
use crate::config::schema::FILE;
use crate::config::*;

/// A file with a table, the table, the key that it needs, the word it needs there, and the one found.
const OTHERS: [(&str, &str, &str, &str, &str); 8] = [
    (
        "partition.dirichlet.devices = 3",
        "partition.dirichlet",
        "partition.scheme",
        "dirichlet",
        "mix",
    ),
    ("privacy.lapa.window = 3", "privacy.lapa", "privacy.allocator", "lapa", "uniform"),
    ("transmit.digital = {}", "transmit.digital", "transmit.uplink", "digital", "ideal"),
    (
        "aggregate.wasserstein.floor = 1",
        "aggregate.wasserstein",
        "aggregate.rule",
        "wasserstein",
        "fedavg",
    ),
    ("control.switch.rule = \"per-device\"", "control.switch", "control.noise", "switch", "always"),
    (
        "control.private.budget_fraction = 0.2",
        "control.private",
        "control.pilot",
        "private",
        "synthetic",
    ),
    (
        "transmit = { uplink = \"signal\", signal.digital.bits = 3 }",
        "transmit.signal.digital",
        "transmit.signal.symbols",
        "digital",
        "analog",
    ),
    (
        "privacy.epsilon = 1\naggregate = { rule = \"wasserstein\", wasserstein = { histograms = \"public\", noisy.budget_fraction = 0.1 } }",
        "aggregate.wasserstein.noisy",
        "aggregate.wasserstein.histograms",
        "noisy",
        "public",
    ),
];

/// A table of a choice that was not made is named with its selector, wherever the choice was made.
#[test]
fn tables_of_other_choices_are_refused() {
    let refusal = |table: &str, selector: &str, word: &str, is: &str| {
        format!(
            "[{table}] is read only with {selector} = \"{word}\"; it is \"{is}\"\n  help: remove \
             [{table}], or set {selector} = \"{word}\""
        )
    };
    let mix = refusal("partition.mix", "partition.scheme", "mix", "dirichlet");
    refuses(
        "[partition]\nscheme = \"dirichlet\"\nmix.labels = 2\n",
        &format!("lapa.toml:3:1: {mix}"),
    );
    for (text, table, selector, word, is) in OTHERS {
        let error = read(text).unwrap_err();
        let words = refusal(table, selector, word, is);
        assert!(error.to_string().ends_with(&words), "{text}: {error}");
        assert!(error.related().is_empty(), "{error}");
    }
}

/// A flag for another choice takes the file's table with it; a flag for a table does not.
#[test]
fn flags_choose_and_take_the_files_tables_with_them() {
    let text = "partition.mix.iid = 3\nprivacy = { allocator = \"lapa\", lapa.window = 3 }\n\
                transmit = { uplink = \"digital\", digital.bits = 3 }";
    let flagged = with_flags(
        text,
        &["partition.scheme=iid", "privacy.allocator=uniform", "transmit.uplink=analog"],
    );
    let alone = with_flags(
        "privacy = {}",
        &["partition.scheme=iid", "privacy.allocator=uniform", "transmit.uplink=analog"],
    );
    assert_eq!(flagged.unwrap(), alone.unwrap());
    let same = with_flags(text, &["privacy.allocator=lapa"]).unwrap();
    assert_eq!(same, read(text).unwrap());
    flags_refuse(
        text,
        &["privacy.allocator=uniform", "privacy.lapa.decay=2"],
        "-c privacy.allocator=uniform: [privacy.lapa] is read only with privacy.allocator = \
         \"lapa\"; it is \"uniform\"\n  help: remove [privacy.lapa], or set privacy.allocator = \
         \"lapa\"",
    );
}

#[test]
fn old_keys_name_the_new_ones() {
    for (old, new) in [
        ("partition.iid = 5", "`partition.iid` is now `partition.mix.iid`"),
        ("partition.shards = 2", "`partition.shards` is now `partition.shards.per_device`"),
        (
            "partition.iid_samples = [1, 2]",
            "`partition.iid_samples` is now `partition.mix.iid_samples` or `partition.iid.samples`",
        ),
        ("privacy.pid_window = 3", "`privacy.pid_window` is now `privacy.lapa.window`"),
        ("privacy.sampling = \"full\"", "`privacy.sampling` is now `learn.sampling`"),
        ("privacy.ledger = \"l.db\"", "`privacy.ledger` is now `run.ledger`"),
        ("control.hidden = 3", "`control.hidden` is now `control.ddpg.hidden`"),
        (
            "privacy.allocator = \"none\"",
            "expected one of \"uniform\", \"arb\", \"lapa\", \"optimal-split\"\n  help: remove \
             [privacy], or set privacy = \"none\"",
        ),
    ] {
        let error = read(old).unwrap_err().to_string();
        assert!(error.ends_with(new), "{error}");
    }
    flags_refuse(
        "",
        &["privacy.decay=2"],
        "-c privacy.decay=2: `privacy.decay` is now `privacy.lapa.decay`",
    );
    // Every new key is one.
    for (old, new) in MOVED {
        for path in *new {
            let mut table = &*FILE;
            for key in path.split('.') {
                table = &table["properties"][key];
            }
            assert!(table.is_object(), "{old} → {path}");
        }
    }
}

#[test]
fn words_of_other_programs_are_understood() {
    for (text, meant) in [
        ("learn.lr = 0.1", "did you mean `learn.learning_rate`?"),
        ("partition.alpha = 0.1", "did you mean `partition.dirichlet.concentration`?"),
        ("num_clients = 3", "did you mean `devices` of the scheme's table"),
        ("learn.epochs = 3", "did you mean `learn.local_epochs`"),
        (
            "privacy.noise_multiplier = 1",
            "did you mean `privacy.epsilon`, or `privacy.initial_sigma`",
        ),
        ("learn.batch_size = 32", "did you mean `learn.batch_fraction`"),
        ("run.num-rounds = 3", "did you mean `run.rounds`?"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.help().unwrap().starts_with(meant), "{error}");
    }
}

#[test]
fn without_privacy_there_is_none() {
    assert_eq!(read("privacy = \"none\"").unwrap(), Experiment::default());
    let text = "[privacy]\nepsilon = 2\n";
    assert_eq!(with_flags(text, &["privacy=none"]).unwrap(), Experiment::default());
    assert_eq!(
        with_flags("privacy = \"none\"", &["privacy.epsilon=2"]).unwrap(),
        read(text).unwrap()
    );
    let bare = read("[privacy]").unwrap().privacy.unwrap();
    assert_eq!(bare.level, NoiseLevel::Epsilon(8.0));
    refuses(
        "privacy = \"off\"",
        "lapa.toml:1:11: `privacy` = \"off\": expected a section, or \"none\"",
    );
}
