//! Tests of the configuration, and their helpers.

mod choice;
mod control;
mod layers;
mod limits;
mod privacy;
mod radio;
mod radio_input;
mod round_trip;
mod template;

use super::*;
use crate::data::{DataName, FeatureNorm, Features, Format};
use crate::partition::{Dirichlet, Iid, Mix, Scheme, Shards};
use lapa_privacy::Adjacency;
use lapa_privacy::allocate::{AllocatorConfig, Basis, LapaConfig, PidError, UniformConfig};

fn read(text: &str) -> Result<Experiment, ConfigError> {
    Experiment::from_toml(text, "lapa.toml", &[])
}

fn with_flags(text: &str, flags: &[&str]) -> Result<Experiment, ConfigError> {
    let flags: Result<Vec<_>, _> = flags.iter().map(|flag| Override::parse(flag)).collect();
    Experiment::from_toml(text, "lapa.toml", &flags?)
}

/// Checks the whole text of a refusal.
fn refuses(text: &str, expected: &str) {
    assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
}

fn flags_refuse(text: &str, flags: &[&str], expected: &str) {
    assert_eq!(with_flags(text, flags).unwrap_err().to_string(), expected);
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let experiment = read("").unwrap();
    assert_eq!(experiment.profile, Profile::Certified);
    let run = Run {
        rounds: 150,
        seed: 0,
        training_seed: None,
        threads: 0,
        participation: 1.0,
        evaluate_every: 5,
        evaluate_from: None,
        checkpoint_every: 10,
        entropy: Entropy::Seed,
        ledger: None,
    };
    assert_eq!(experiment.run, run);
    assert_eq!(experiment.data.name, DataName::Mnist);
    let mix = Mix {
        iid: 5,
        non_iid: 10,
        labels: [1, 2],
        iid_samples: [3000, 5000],
        non_iid_samples: [3000, 5000],
    };
    assert_eq!(experiment.partition.scheme, Scheme::Mix(mix));
    assert_eq!(
        experiment.model,
        ModelSpec {
            name: ModelName::Cnn,
            norm: Norm::Group,
            start: Start::Random,
            features: Features::None,
            feature_norm: FeatureNorm::GroupUnit,
            layers: Vec::new(),
        }
    );
    let learn = Learn {
        update: Update::Gradient,
        local_epochs: 1,
        sampling: BatchSampling::Fixed,
        batch_fraction: 0.1,
        learning_rate: 0.5,
        momentum: 0.9,
        averaging: 0.0,
        weight_decay: 0.0,
        clip: Clip::Sample,
        clip_norm: Some(1.0),
    };
    assert_eq!(experiment.learn, learn);
    assert_eq!((experiment.privacy.as_ref(), experiment.delta()), (None, 1e-5));
    assert_eq!(experiment.observe.devices, ObserveDevices::List);
    assert_eq!(experiment, Experiment::default());
}

#[test]
fn defaults_follow_profile_data_update_model_and_scheme() {
    let paper = read("profile = \"paper\"").unwrap();
    assert_eq!(paper.model.norm, Norm::Batch);
    assert_eq!((paper.learn.clip, paper.learn.clip_norm), (Clip::Device, Some(5.0)));
    assert_eq!(paper.learn.learning_rate, 0.01);
    let epoch = read("profile = \"paper\"\nlearn.update = \"epoch\"").unwrap();
    assert_eq!((epoch.learn.clip_norm, epoch.learn.learning_rate), (Some(50.0), 0.01));
    assert_eq!(read("learn.update = \"epoch\"").unwrap().learn.learning_rate, 0.3);
    let five = read(
        "profile = \"paper\"\nlearn = { update = \"epoch\", local_epochs = 5 }\n\
                     transmit.uplink = \"digital\"",
    )
    .unwrap();
    assert_eq!((epoch.learn.local_epochs, five.learn.clip_norm), (1, Some(250.0)));
    let fashion = read("data.name = \"fashion-mnist\"").unwrap();
    assert_eq!(fashion.learn.learning_rate, 0.4);
    let fashion = read("profile = \"paper\"\ndata.name = \"fashion-mnist\"").unwrap();
    assert_eq!(fashion.learn.learning_rate, 0.008);
    assert_eq!(read("learn.update = \"epoch\"").unwrap().learn.momentum, 0.0);
    assert_eq!(read("model.name = \"mlp\"").unwrap().model.norm, Norm::None);
    assert_eq!(read("learn.clip = \"none\"").unwrap().learn.clip_norm, None);
    let scheme =
        |word: &str| read(&format!("partition.scheme = \"{word}\"")).unwrap().partition.scheme;
    let devices = 15;
    assert_eq!(scheme("dirichlet"), Scheme::Dirichlet(Dirichlet { devices, concentration: 0.5 }));
    assert_eq!(scheme("shards"), Scheme::Shards(Shards { devices, per_device: 2 }));
    assert_eq!(scheme("iid"), Scheme::Iid(Iid { devices, ..Iid::default() }));
}

#[test]
fn given_keys_win_over_the_profile() {
    let text = "profile = \"paper\"\nmodel.norm = \"group\"\nlearn.clip = \"sample\"\n";
    let experiment = read(text).unwrap();
    assert_eq!(experiment.model.norm, Norm::Group);
    assert_eq!(experiment.learn.clip, Clip::Sample);
    let flagged = with_flags(text, &["profile=certified", "learn.clip_norm=2"]).unwrap();
    assert_eq!(flagged.profile, Profile::Certified);
    assert_eq!(flagged.learn.clip_norm, Some(2.0));
}

/// The parameters of scheme mix.
fn mix(text: &str, flags: &[&str]) -> Mix {
    match with_flags(text, flags).unwrap().partition.scheme {
        Scheme::Mix(mix) => mix,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_number_is_a_range_of_one() {
    let text = "[partition.mix]\nlabels = 2\niid_samples = 1_00\nnon_iid_samples = [5, 0x10]\n";
    let mix = mix(text, &[]);
    assert_eq!(mix.labels, [2, 2]);
    assert_eq!((mix.iid_samples, mix.non_iid_samples), ([100, 100], [5, 16]));
    let iid = read("partition = { scheme = \"iid\", iid.samples = 7 }").unwrap().partition.scheme;
    assert_eq!(iid.largest_samples(), Some(7));
}

#[test]
fn the_devices_of_a_mix_are_the_sum() {
    let devices = |text: &str| read(text).unwrap().partition.scheme.devices();
    assert_eq!(devices("partition.mix = { iid = 15, non_iid = 0 }"), 15);
    assert_eq!(devices("partition.mix.iid = 7"), 17);
    refuses(
        "[partition.mix]\niid = 0\nnon_iid = 0\n",
        "lapa.toml:2:7: `partition.mix.iid` = 0 and `partition.mix.non_iid` = 0 make 0 devices: \
         expected from 1 to 1000000\n  help: change partition.mix.iid or partition.mix.non_iid",
    );
}

#[test]
fn unknown_keys_get_the_nearest_one() {
    refuses(
        "[run]\nseed = 1\nround = 3\n",
        "lapa.toml:3:1: unknown key `run.round`: expected one of rounds, seed, training_seed, threads, \
         participation, evaluate_every, evaluate_from, checkpoint_every, entropy, ledger\n  help: did you mean `rounds`?",
    );
    refuses(
        "[lern]\n",
        "lapa.toml:1:2: unknown key `lern`: expected one of profile, run, data, partition, model, \
         learn, privacy, radio, transmit, aggregate, control, observe\n  help: did you mean `learn`?",
    );
    refuses(
        "rounds = 3\n",
        "lapa.toml:1:1: unknown key `rounds`: expected one of profile, run, data, partition, \
         model, learn, privacy, radio, transmit, aggregate, control, observe\n  help: `rounds` belongs to [run]",
    );
    refuses(
        "[wifi]\npower = 1\n",
        "lapa.toml:1:2: unknown key `wifi`: expected one of profile, run, data, partition, \
         model, learn, privacy, radio, transmit, aggregate, control, observe",
    );
    refuses(
        "learn.window = 3\n",
        "lapa.toml:1:7: unknown key `learn.window`: expected one of update, local_epochs, sampling, \
         batch_fraction, learning_rate, momentum, averaging, weight_decay, clip, clip_norm\n  help: \
         `window` belongs to [privacy.lapa]",
    );
    // The first mistake in the file comes first, whatever its section.
    assert_eq!(read("[run]\nx = 1\n[data]\ny = 2\n").unwrap_err().line_column(), Some((2, 1)));
    // A quoted key with a dot is one key.
    assert_eq!(read("\"run.seed\" = 2\n").unwrap_err().span(), Some(0..10));
}

#[test]
fn wrong_types_and_words_say_what_is_expected() {
    refuses(
        "[run]\nrounds = \"ten\"\n",
        "lapa.toml:2:10: `run.rounds` = \"ten\": expected a whole number from 1 to 1000000",
    );
    refuses(
        "[learn]\nupdate = \"gradients\"\n",
        "lapa.toml:2:10: `learn.update` = \"gradients\": expected one of \"gradient\", \"epoch\"\
         \n  help: did you mean \"gradient\"?",
    );
    refuses("run = 3\n", "lapa.toml:1:7: `run` = 3: expected a section");
    refuses(
        "[partition.mix]\nlabels = [1]\n",
        "lapa.toml:2:10: `partition.mix.labels` = [1]: expected a whole number from 1 to 4294967295, \
         or a pair [min, max], each a whole number from 1 to 4294967295",
    );
    refuses(
        "[data]\nname = \"minst\"\n",
        "lapa.toml:2:8: `data.name`: unknown data set `minst`: use mnist, fashion-mnist, cifar-10, \
         synthetic, idx:PATH, cifar:PATH, npz:PATH, csv:PATH, images:PATH or parquet:PATH\n  \
         help: did you mean \"mnist\"?",
    );
    refuses(
        "data.name = 7\n",
        "lapa.toml:1:13: `data.name` = 7: expected a string such as \"mnist\", \
         \"fashion-mnist\", \"cifar-10\", \"synthetic\", \"idx:PATH\", \"cifar:PATH\", \"npz:PATH\", \
         \"csv:PATH\", \"images:PATH\", \"parquet:PATH\"",
    );
    assert!(read("[run]\nrounds = \n").unwrap_err().message().starts_with("not valid TOML: "));
    assert_eq!(read("[run]\nseed = 1\nseed = 2\n").unwrap_err().line_column(), Some((3, 1)));
}

#[test]
fn impossible_values_are_refused_and_the_edges_accepted() {
    let ranges = [
        (
            "run.rounds",
            "0 -1 1000001 4294967296 1.5",
            "1 1000000",
            "a whole number from 1 to 1000000",
        ),
        (
            "run.seed",
            "-1 18446744073709551616",
            "0 18446744073709551615",
            "a whole number from 0 to 18446744073709551615",
        ),
        ("run.threads", "1025", "0 1024", "a whole number from 0 to 1024"),
        (
            "run.participation",
            "0 1.1 nan inf -inf",
            "1 1.0 1e-9",
            "a finite number above 0 and at most 1",
        ),
        ("run.evaluate_every", "0", "1", "a whole number from 1 to 4294967295"),
        ("run.checkpoint_every", "0", "1", "a whole number from 1 to 4294967295"),
        ("learn.batch_fraction", "0.0 1.01 nan", "1 0.5 1e-6", "a finite number from 1e-6 to 1"),
        (
            "learn.learning_rate",
            "0 -1e-3 nan inf 1e-50",
            "3 1e-9",
            "a finite number at least 1e-12",
        ),
        ("learn.momentum", "1 -0.1 nan", "0 0.999", "a finite number at least 0 and below 1"),
        (
            "learn.clip_norm",
            "0 -1 inf 1e-7 1e13",
            "1 0.5 1e-6",
            "a finite number from 1e-6 to 1000000000000.0",
        ),
        ("partition.mix.iid", "-1 0.5", "0 15", "a whole number from 0 to 1000000"),
    ];
    for (key, bad, good, allowed) in ranges {
        for value in bad.split(' ') {
            let column = key.len() + 4;
            let expected = format!("lapa.toml:1:{column}: `{key}` = {value}: expected {allowed}");
            refuses(&format!("{key} = {value}"), &expected);
        }
        for value in good.split(' ') {
            read(&format!("{key} = {value}")).unwrap();
        }
    }
    for bad in ["0", "[0, 1]", "[1, 2, 3]", "[1.0, 2.0]", "\"1\""] {
        assert!(read(&format!("partition.mix.labels = {bad}")).is_err(), "{bad}");
    }
    refuses(
        "[partition.mix]\niid_samples = [9, 5]\n",
        "lapa.toml:2:15: `partition.mix.iid_samples` = [9, 5]: expected [min, max] with 1 ≤ min \
         ≤ max\n  help: write the smaller number first",
    );
    refuses(
        "partition.scheme = \"dirichlet\"\n[partition.dirichlet]\nconcentration = 0\n",
        "lapa.toml:3:17: `partition.dirichlet.concentration` = 0: expected a finite number above 0",
    );
}

#[test]
fn all_contradictions_are_told_at_once() {
    let text = "data.classes = 3\n\
                [model]\nname = \"mlp\"\nnorm = \"group\"\n\
                [learn]\nclip = \"device\"\n\
                [privacy]\nepsilon = 1\n\
                [aggregate]\nwasserstein.floor = 1\nser_threshold = 0.1\nsinr_threshold_db = 1\n";
    let error = read(text).unwrap_err();
    let all: Vec<_> = std::iter::once(&error).chain(error.related()).collect();
    let places: Vec<_> = all.iter().map(|error| error.line_column().unwrap().0).collect();
    assert_eq!(places, [10, 12, 1, 4, 6], "{error}");
    assert!(all[4].message().contains("requires `learn.clip` = \"sample\""), "{error}");
}

/// Beside a refused value, contradictions between values that are given; but none that may follow
/// from it: `privacy.basis` is perhaps "paper", with which the clip would be allowed.
#[test]
fn refused_values_come_with_the_contradictions_that_are_sure() {
    let text = "[data]\nname = \"minst\"\nclases = 3\n\
                [learn]\nclip = \"device\"\nlocal_epochs = 0\n\
                [privacy]\nbassis = \"paper\"\n\
                [model]\nname = \"mlp\"\nnorm = \"group\"\n\
                [aggregate]\nser_threshold = 0.1\nsinr_threshold_db = 1\n\"a.b\" = 1\n";
    let error = read(&text.replace("\"a.b\" = 1", "")).unwrap_err();
    let all: Vec<_> = std::iter::once(&error).chain(error.related()).collect();
    let places: Vec<_> = all.iter().map(|error| error.line_column().unwrap().0).collect();
    assert_eq!(places, [3, 6, 8, 2, 14, 11], "{error}");
    assert!(all[3].message().contains("unknown data set `minst`"), "{error}");
    // A key that has a dot in it stays in the tree; its mistake is told all the same.
    let error = read(text).unwrap_err();
    assert!(error.to_string().contains("unknown key `aggregate.a.b`"), "{error}");
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let batch = "`model.norm` = \"batch\" does not go with `learn.clip` = \"sample\": batch norm \
                 makes one sample's gradient depend on the other samples of the batch\n  help: use \
                 group norm (model.norm = \"group\"), or clip the device's upload (learn.clip = \
                 \"device\")";
    refuses("[model]\nnorm = \"batch\"\n", &format!("lapa.toml:2:8: {batch}"));
    let text = "profile = \"paper\"\nlearn.clip = \"sample\"\n";
    refuses(text, &format!("lapa.toml:2:14: {batch}"));
    let text = "learn.clip = \"sample\"";
    flags_refuse(text, &["profile=paper"], &format!("-c profile=paper: {batch}"));
    refuses(
        "[learn]\nclip = \"none\"\nclip_norm = 2\n",
        "lapa.toml:3:13: `learn.clip_norm` = 2 does not go with `learn.clip` = \"none\"\n  help: \
         remove clip_norm, or set clip to \"device\" or \"sample\"",
    );
    refuses(
        "[model]\nname = \"mlp\"\nnorm = \"group\"\n",
        "lapa.toml:3:8: `model.norm` = \"group\" does not go with `model.name` = \"mlp\": that \
         model has no normalization layer, so only \"none\" is allowed\n  help: remove model.norm, \
         or use model.name = \"cnn\"",
    );
    assert_eq!(read("model = { name = \"mlp\", norm = \"none\" }").unwrap().model.norm, Norm::None);
}

#[test]
fn flags_set_keys() {
    let text = "[run]\nrounds = 9\nseed = 4\n";
    let flags = [
        "run.rounds=30",
        "data.name=synthetic",
        "learn.learning_rate=0.5",
        "partition.mix.labels=[1, 3]",
        "model.name=\"logistic\"",
        "run.rounds = 31",
    ];
    let experiment = with_flags(text, &flags).unwrap();
    assert_eq!((experiment.run.rounds, experiment.run.seed), (31, 4));
    assert_eq!(experiment.data.name, DataName::Synthetic);
    assert_eq!(experiment.learn.learning_rate, 0.5);
    assert_eq!(mix(text, &flags).labels, [1, 3]);
    assert_eq!(experiment.model.name, ModelName::Logistic);
    assert_eq!(with_flags("", &["profile=paper"]).unwrap().learn.clip, Clip::Device);
    let path = with_flags("", &["data.name=idx:some folder/a=b"]).unwrap().data.name;
    assert_eq!(path, DataName::Files(Format::Idx, "some folder/a=b".into()));
    // A flag may mend what the file has wrong.
    assert_eq!(with_flags("run.rounds = 0", &["run.rounds=1"]).unwrap().run.rounds, 1);
}

#[test]
fn mistakes_in_flags_name_the_flag() {
    let form = "write section.key=value, for example run.rounds=30";
    flags_refuse("", &["run.rounds"], &format!("-c run.rounds: no `=` in it\n  help: {form}"));
    flags_refuse(
        "",
        &["run.rounds="],
        &format!("-c run.rounds=: no value after `=`\n  help: {form}"),
    );
    flags_refuse("", &["=3"], &format!("-c =3: `` is not a key\n  help: {form}"));
    flags_refuse("", &["a..c=3"], &format!("-c a..c=3: `a..c` is not a key\n  help: {form}"));
    flags_refuse(
        "",
        &["run={rounds=3}"],
        "-c run={rounds=3}: `{rounds=3}` is a table, but a flag sets one key\n  help: give one flag \
         per key, for example run.rounds=30",
    );
    assert!(Override::parse("partition.mix.labels=[1,").unwrap_err().message().contains("`[1,`"));
    flags_refuse(
        "[run]\nrounds = 5\n",
        &["run.rounds=0"],
        "-c run.rounds=0: `run.rounds` = 0: expected a whole number from 1 to 1000000",
    );
    flags_refuse(
        "",
        &["learn.clip=devise"],
        "-c learn.clip=devise: `learn.clip` = \"devise\": expected one of \"none\", \"device\", \
         \"sample\"\n  help: did you mean \"device\"?",
    );
    flags_refuse(
        "",
        &["ran.rounds=3"],
        "-c ran.rounds=3: unknown key `ran`: expected one of profile, run, data, partition, model, \
         learn, privacy, radio, transmit, aggregate, control, observe\n  help: did you mean `run`?",
    );
    flags_refuse(
        "profile = \"paper\"",
        &["profile.x=3"],
        "-c profile.x=3: `profile` is a table: expected one of \"certified\", \"paper\", \"printed\"",
    );
    let error = with_flags("run.seed = 3", &["run=4"]).unwrap_err();
    assert_eq!((error.flag(), error.file_name(), error.span()), (Some("run=4"), None, None));
}

#[test]
fn errors_give_their_parts_to_a_renderer() {
    let text = "# Größe\n[run]\nrounds = 'zehn'\n";
    let error = read(text).unwrap_err();
    assert_eq!(error.file_name(), Some("lapa.toml"));
    assert_eq!(error.source_text(), Some(text));
    assert_eq!(&text[error.span().unwrap()], "'zehn'");
    assert_eq!(error.line_column(), Some((3, 10)));
    assert_eq!((error.help(), error.flag()), (None, None));
}
