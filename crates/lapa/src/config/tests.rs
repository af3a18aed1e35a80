use super::*;
use crate::data::DataName;
use lapa_privacy::Adjacency;
use lapa_privacy::allocate::{Basis, PidError};

pub(super) fn read(text: &str) -> Result<Experiment, ConfigError> {
    Experiment::from_toml(text, "lapa.toml", &[])
}

pub(super) fn with_flags(text: &str, flags: &[&str]) -> Result<Experiment, ConfigError> {
    let flags: Result<Vec<_>, _> = flags.iter().map(|flag| Override::parse(flag)).collect();
    Experiment::from_toml(text, "lapa.toml", &flags?)
}

/// Checks the whole text of a refusal.
pub(super) fn refuses(text: &str, expected: &str) {
    assert_eq!(read(text).unwrap_err().to_string(), expected);
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
        threads: 0,
        participation: 1.0,
        evaluate_every: 5,
        checkpoint_every: 10,
    };
    assert_eq!(experiment.run, run);
    assert_eq!(experiment.data.name, DataName::Mnist);
    let partition = PartitionSpec {
        scheme: Scheme::Mix,
        devices: 15,
        iid: Some(5),
        non_iid: Some(10),
        labels: Some([1, 2]),
        iid_samples: Some([3000, 5000]),
        non_iid_samples: Some([3000, 5000]),
        concentration: None,
        shards: None,
    };
    assert_eq!(experiment.partition, partition);
    assert_eq!(
        experiment.model,
        ModelSpec { name: ModelName::Cnn, norm: Norm::Group, start: Start::Random }
    );
    let learn = Learn {
        update: Update::Gradient,
        batch_fraction: 0.1,
        learning_rate: 0.5,
        momentum: 0.9,
        averaging: 0.0,
        clip: Clip::Sample,
        clip_norm: Some(1.0),
    };
    assert_eq!(experiment.learn, learn);
    let privacy = &experiment.privacy;
    assert_eq!((privacy.basis, privacy.allocator), (Basis::Certified, AllocatorName::None));
    assert_eq!((privacy.epsilon, privacy.delta), (None, 1e-5));
    assert_eq!(privacy.sampling, BatchSampling::Fixed);
    assert_eq!((privacy.entropy, &privacy.ledger), (Entropy::Seed, &None));
    assert_eq!(experiment.observe.devices, ObserveDevices::List);
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
    let fashion = read("data.name = \"fashion-mnist\"").unwrap();
    assert_eq!(fashion.learn.learning_rate, 0.4);
    let fashion = read("profile = \"paper\"\ndata.name = \"fashion-mnist\"").unwrap();
    assert_eq!(fashion.learn.learning_rate, 0.008);
    assert_eq!(read("learn.update = \"epoch\"").unwrap().learn.momentum, 0.0);
    assert_eq!(read("model.name = \"mlp\"").unwrap().model.norm, Norm::None);
    assert_eq!(read("learn.clip = \"none\"").unwrap().learn.clip_norm, None);
    let dirichlet = read("partition.scheme = \"dirichlet\"").unwrap().partition;
    assert_eq!((dirichlet.devices, dirichlet.concentration), (15, Some(0.5)));
    assert_eq!((dirichlet.iid, dirichlet.labels, dirichlet.shards), (None, None, None));
    assert_eq!(read("partition.scheme = \"shards\"").unwrap().partition.shards, Some(2));
    assert_eq!(read("partition.scheme = \"iid\"").unwrap().partition.iid_samples, None);
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

#[test]
fn a_number_is_a_range_of_one() {
    let text = "[partition]\nlabels = 2\niid_samples = 1_00\nnon_iid_samples = [5, 0x10]\n";
    let partition = read(text).unwrap().partition;
    assert_eq!(partition.labels, Some([2, 2]));
    assert_eq!(partition.iid_samples, Some([100, 100]));
    assert_eq!(partition.non_iid_samples, Some([5, 16]));
}

#[test]
fn any_two_device_counts_imply_the_third() {
    let counts = |text: &str| {
        let partition = read(&format!("[partition]\n{text}")).unwrap().partition;
        (partition.devices, partition.iid.unwrap(), partition.non_iid.unwrap())
    };
    assert_eq!(counts("devices = 15\niid = 7"), (15, 7, 8));
    assert_eq!(counts("devices = 15\nnon_iid = 12"), (15, 3, 12));
    assert_eq!(counts("iid = 15\nnon_iid = 0"), (15, 15, 0));
    assert_eq!(counts("devices = 4\niid = 1\nnon_iid = 3"), (4, 1, 3));
    assert_eq!(counts("iid = 7"), (17, 7, 10));
    refuses(
        "[partition]\ndevices = 20\niid = 5\nnon_iid = 10\n",
        "lapa.toml:2:11: `partition.devices` = 20 is not the sum of `partition.iid` = 5 and \
         `partition.non_iid` = 10, which is 15\n  help: remove one of the three; the other two \
         imply it",
    );
    refuses(
        "[partition]\ndevices = 3\niid = 5\n",
        "lapa.toml:2:11: `partition.iid` = 5 is more than `partition.devices` = 3\n  help: raise \
         partition.devices, or remove it",
    );
    refuses(
        "[partition]\ndevices = 30\n",
        "lapa.toml:2:11: `partition.devices` = 30 leaves open how many devices are IID\n  help: \
         give partition.iid or partition.non_iid too",
    );
    refuses(
        "[partition]\niid = 0\nnon_iid = 0\n",
        "lapa.toml:2:7: `partition.iid` = 0 and `partition.non_iid` = 0 make 0 devices: expected \
         from 1 to 1000000\n  help: change partition.iid or partition.non_iid",
    );
}

#[test]
fn unknown_keys_get_the_nearest_one() {
    refuses(
        "[run]\nseed = 1\nround = 3\n",
        "lapa.toml:3:1: unknown key `run.round`: expected one of rounds, seed, threads, \
         participation, evaluate_every, checkpoint_every\n  help: did you mean `rounds`?",
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
    // The first mistake in the file comes first, whatever its section.
    assert_eq!(read("[run]\nx = 1\n[data]\ny = 2\n").unwrap_err().line_column(), Some((2, 1)));
    // A quoted key with a dot is one key.
    assert_eq!(read("\"run.seed\" = 2\n").unwrap_err().span(), Some(0..10));
}

#[test]
fn wrong_types_and_words_say_what_is_expected() {
    refuses(
        "[run]\nrounds = \"ten\"\n",
        "lapa.toml:2:10: `run.rounds` is \"ten\": expected a whole number from 1 to 1000000",
    );
    refuses(
        "[learn]\nupdate = \"gradients\"\n",
        "lapa.toml:2:10: `learn.update` is \"gradients\": expected one of \"gradient\", \"epoch\"\
         \n  help: did you mean \"gradient\"?",
    );
    refuses("run = 3\n", "lapa.toml:1:7: `run` is 3: expected a section");
    refuses(
        "[partition]\nlabels = [1]\n",
        "lapa.toml:2:10: `partition.labels` is [1]: expected a whole number from 1 to 4294967295, \
         or a pair [min, max], each a whole number from 1 to 4294967295",
    );
    refuses(
        "[data]\nname = \"minst\"\n",
        "lapa.toml:2:8: `data.name`: unknown data set `minst`: use mnist, fashion-mnist, synthetic \
         or idx:PATH\n  help: did you mean \"mnist\"?",
    );
    refuses(
        "data.name = 7\n",
        "lapa.toml:1:13: `data.name` is 7: expected a string such as \"mnist\", \
         \"fashion-mnist\", \"synthetic\", \"idx:PATH\"",
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
        ("partition.devices", "0 1000001", "15", "a whole number from 1 to 1000000"),
    ];
    for (key, bad, good, allowed) in ranges {
        for value in bad.split(' ') {
            let column = key.len() + 4;
            let expected = format!("lapa.toml:1:{column}: `{key}` is {value}: expected {allowed}");
            refuses(&format!("{key} = {value}"), &expected);
        }
        for value in good.split(' ') {
            read(&format!("{key} = {value}")).unwrap();
        }
    }
    for bad in ["0", "[0, 1]", "[1, 2, 3]", "[1.0, 2.0]", "\"1\""] {
        assert!(read(&format!("partition.labels = {bad}")).is_err(), "{bad}");
    }
    refuses(
        "[partition]\niid_samples = [9, 5]\n",
        "lapa.toml:2:15: `partition.iid_samples` is [9, 5]: expected [min, max] with min at most \
         max\n  help: write [5, 9]",
    );
    refuses(
        "[partition]\nscheme = \"dirichlet\"\nconcentration = 0\n",
        "lapa.toml:3:17: `partition.concentration` is 0: expected a finite number above 0",
    );
}

#[test]
fn keys_of_another_scheme_are_refused() {
    refuses(
        "[partition]\nscheme = \"dirichlet\"\nlabels = 2\n",
        "lapa.toml:3:10: `partition.labels` belongs to `partition.scheme` = \"mix\", but the scheme \
         is \"dirichlet\"\n  help: remove labels, or set partition.scheme to \"mix\"",
    );
    refuses(
        "partition.iid_samples = 9\npartition.scheme = \"shards\"\n",
        "lapa.toml:1:25: `partition.iid_samples` belongs to `partition.scheme` = \"mix\" or \
         \"iid\", but the scheme is \"shards\"\n  help: remove iid_samples, or set \
         partition.scheme to \"mix\" or \"iid\"",
    );
    for key in ["concentration = 1", "shards = 2"] {
        assert!(read(&format!("partition.{key}")).is_err(), "{key} with mix");
    }
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
        "partition.labels=[1, 3]",
        "model.name=\"logistic\"",
        "run.rounds = 31",
    ];
    let experiment = with_flags(text, &flags).unwrap();
    assert_eq!((experiment.run.rounds, experiment.run.seed), (31, 4));
    assert_eq!(experiment.data.name, DataName::Synthetic);
    assert_eq!(experiment.learn.learning_rate, 0.5);
    assert_eq!(experiment.partition.labels, Some([1, 3]));
    assert_eq!(experiment.model.name, ModelName::Logistic);
    assert_eq!(with_flags("", &["profile=paper"]).unwrap().learn.clip, Clip::Device);
    let path = with_flags("", &["data.name=idx:some folder/a=b"]).unwrap().data.name;
    assert_eq!(path, DataName::Idx("some folder/a=b".into()));
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
    flags_refuse("", &["a.b.c=3"], &format!("-c a.b.c=3: `a.b.c` is not a key\n  help: {form}"));
    flags_refuse(
        "",
        &["run={rounds=3}"],
        "-c run={rounds=3}: `{rounds=3}` is a table, but a flag sets one key\n  help: give one flag \
         per key, for example run.rounds=30",
    );
    assert!(Override::parse("partition.labels=[1,").unwrap_err().message().contains("`[1,`"));
    flags_refuse(
        "[run]\nrounds = 5\n",
        &["run.rounds=0"],
        "-c run.rounds=0: `run.rounds` is 0: expected a whole number from 1 to 1000000",
    );
    flags_refuse(
        "",
        &["learn.clip=devise"],
        "-c learn.clip=devise: `learn.clip` is \"devise\": expected one of \"none\", \"device\", \
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
        "-c profile.x=3: `profile` is a table: expected one of \"certified\", \"paper\"",
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

#[test]
fn the_template_is_the_default_and_names_every_key() {
    let template = template("").unwrap();
    assert_eq!(read(&template).unwrap(), Experiment::default());
    let lines: Vec<&str> = template.lines().map(|line| line.trim_start_matches("# ")).collect();
    let mut section = 0;
    for (name, inner) in json_schema()["properties"].as_object().unwrap() {
        let Some(keys) = inner["properties"].as_object() else {
            assert!(lines.iter().any(|line| line.starts_with(&format!("{name} = "))), "{name}");
            continue;
        };
        section =
            section + lines[section..].iter().position(|l| *l == format!("[{name}]")).unwrap();
        for key in keys.keys() {
            let found = lines[section..].iter().any(|line| line.starts_with(&format!("{key} = ")));
            assert!(found, "[{name}] {key}");
        }
    }
}

#[test]
fn other_choices_in_the_template_take_their_own_defaults() {
    for choice in ["profile=paper", "partition.scheme=shards", "data.name=fashion-mnist"] {
        let expected = with_flags("", &[choice]).unwrap();
        assert_eq!(with_flags(&template("").unwrap(), &[choice]).unwrap(), expected);
    }
}

/// Keys that are given stay given, keys that follow them still follow, and a default that is not the
/// value is named.
#[test]
fn a_template_of_an_experiment_is_that_experiment() {
    let base = "privacy.epsilon = 2\n[aggregate]\nser_threshold = 0.01\n[run]\nrounds = 7\n";
    let template = template(base).unwrap();
    for flags in [&[][..], &["profile=paper"], &["privacy.allocator=none"], &["run.rounds=9"]] {
        assert_eq!(with_flags(&template, flags).unwrap(), with_flags(base, flags).unwrap());
    }
    for line in [
        "# Default: none.\nepsilon = 2.0\n",
        "at most this symbol error rate send. Default: all devices send.\n",
        "from 1e-12 to 1.\nser_threshold = 0.01\n",
        "# Default: 150.\nrounds = 7\n",
        "# sinr_threshold_db = 4.3\n",
        "# sampling = \"poisson\"\n",
    ] {
        assert!(template.contains(line), "{line}: {template}");
    }
    let error = super::template("run.roundz = 3").unwrap_err().to_string();
    assert!(error.contains("roundz"), "{error}");
}

#[test]
fn a_budget_makes_a_run_private_by_the_basis_of_its_profile() {
    let certified = read("privacy.epsilon = 8").unwrap().privacy;
    assert_eq!((certified.basis, certified.allocator), (Basis::Certified, AllocatorName::Uniform));
    assert_eq!(certified.sampling, BatchSampling::Poisson);
    assert_eq!(certified.adjacency, Adjacency::ZeroOut);
    let paper = read("profile = \"paper\"\nprivacy.epsilon = 8").unwrap().privacy;
    assert_eq!((paper.basis, paper.allocator), (Basis::Paper, AllocatorName::Lapa));
    assert_eq!((paper.sampling, paper.adjacency), (BatchSampling::Fixed, Adjacency::ReplaceOne));
    assert_eq!(paper.pid_error, Some(PidError::Relative));
    let given = read("privacy.allocator = \"lapa\"").unwrap().privacy;
    assert_eq!((given.epsilon, given.pid_error), (Some(8.0), Some(PidError::Debiased)));
    let sigma = read("privacy.initial_sigma = 0.2").unwrap().privacy;
    assert_eq!((sigma.epsilon, sigma.initial_sigma), (None, Some(0.2)));
    let mixed = read(
        "profile = \"paper\"\nmodel.norm = \"group\"\nlearn.clip = \"sample\"\n\
                      privacy.basis = \"certified\"\nprivacy.epsilon = 1",
    );
    assert_eq!(mixed.unwrap().privacy.sampling, BatchSampling::Poisson);
    let full = read("privacy = { epsilon = 1, sampling = \"full\" }").unwrap();
    assert_eq!((full.learn.batch_fraction, full.privacy.adjacency), (1.0, Adjacency::ReplaceOne));
}

#[test]
fn what_proves_nothing_is_refused_with_the_reason() {
    for (text, expected) in [
        ("learn.update = \"epoch\"\nprivacy.epsilon = 8", "requires `learn.update` = \"gradient\""),
        ("learn.clip = \"device\"\nprivacy.epsilon = 8", "requires `learn.clip` = \"sample\""),
        (
            "profile = \"paper\"\nmodel.norm = \"group\"\nlearn = { update = \"epoch\", clip = \"sample\" }\n\
          privacy.epsilon = 8",
            "requires `learn.clip` = \"device\"",
        ),
        ("privacy = { epsilon = 1, initial_sigma = 1 }", "both set the noise"),
        (
            "privacy = { epsilon = 1, allocator = \"none\" }",
            "belongs to an allocator that adds noise",
        ),
        (
            "privacy = { epsilon = 1, decay = 2 }",
            "belongs to \"lapa\", but the allocator is \"uniform\"",
        ),
        ("privacy = { epsilon = 1, allocator = \"optimal-split\" }", "shares one pot"),
        (
            "privacy = { epsilon = 1, sampling = \"full\", adjacency = \"zero-out\" }",
            "no proven sensitivity",
        ),
        (
            "privacy = { epsilon = 1, sampling = \"fixed\", adjacency = \"zero-out\" }",
            "no proven sensitivity",
        ),
        ("privacy = { allocator = \"lapa\", adjacency = \"replace-one\" }", "fixed in advance"),
        (
            "learn.batch_fraction = 0.5\nprivacy = { sampling = \"full\" }",
            "does not go with `privacy.sampling` = \"full\"",
        ),
        (
            "profile = \"paper\"\nprivacy = { epsilon = 1, sampling = \"poisson\" }",
            "know no sampling",
        ),
        ("profile = \"paper\"\nlearn.clip = \"none\"\nprivacy.epsilon = 1", "leaves no bound"),
        (
            "profile = \"paper\"\nprivacy = { epsilon = 1, noise = \"discrete-gaussian\" }",
            "requires `privacy.basis` = \"certified\"",
        ),
        (
            "partition.scheme = \"shards\"\nprivacy = { epsilon = 1, adjacency = \"add-remove\" }",
            "public number of samples",
        ),
        ("privacy.epsilon = 0", "expected a finite number from 0.001 to 1000000.0"),
        ("privacy.delta = 1", "`privacy.delta` is 1: expected"),
        ("privacy.basis = \"papre\"", "did you mean \"paper\"?"),
    ] {
        let error = read(text).unwrap_err();
        let shown = format!("{error} {}", error.help().unwrap_or_default());
        assert!(shown.contains(expected), "{text}: {shown}");
    }
}

#[test]
fn a_flag_that_sets_the_noise_another_way_wins_over_the_file() {
    let file = "privacy.epsilon = 8";
    let sigma = with_flags(file, &["privacy.initial_sigma=0.5"]).unwrap().privacy;
    assert_eq!((sigma.epsilon, sigma.initial_sigma), (None, Some(0.5)));
    let none = with_flags(file, &["privacy.allocator=none"]).unwrap().privacy;
    assert_eq!((none.allocator, none.epsilon), (AllocatorName::None, None));
    assert_eq!(none.sampling, BatchSampling::Fixed);
    let back = with_flags("privacy.initial_sigma = 1", &["privacy.epsilon=2"]).unwrap().privacy;
    assert_eq!((back.epsilon, back.initial_sigma), (Some(2.0), None));
    let both = with_flags("", &["privacy.initial_sigma=1", "privacy.epsilon=2"]);
    assert!(both.unwrap_err().to_string().contains("both set the noise"));
}
