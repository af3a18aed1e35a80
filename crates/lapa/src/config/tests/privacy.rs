//! `[privacy]`: noise, budgets and what proves nothing.

use super::*;

#[test]
fn a_budget_makes_a_run_private_by_the_basis_of_its_profile() {
    let private = |text: &str| {
        let experiment = read(text).unwrap();
        (experiment.privacy.unwrap(), experiment.learn)
    };
    let (certified, learn) = private("privacy.epsilon = 8");
    assert_eq!(
        (certified.basis, certified.allocator),
        (Basis::Certified, AllocatorConfig::Uniform(UniformConfig {}))
    );
    assert_eq!((learn.sampling, certified.adjacency), (BatchSampling::Poisson, Adjacency::ZeroOut));
    let (paper, learn) = private("profile = \"paper\"\nprivacy.epsilon = 8");
    let lapa = LapaConfig { error: PidError::Relative, ..LapaConfig::default() };
    assert_eq!((paper.basis, paper.allocator), (Basis::Paper, AllocatorConfig::Lapa(lapa)));
    assert_eq!((learn.sampling, paper.adjacency), (BatchSampling::Fixed, Adjacency::ReplaceOne));
    let (given, _) = private("privacy.allocator = \"lapa\"");
    let lapa = LapaConfig { error: PidError::Debiased, ..lapa };
    assert_eq!((given.epsilon(), given.allocator), (Some(8.0), AllocatorConfig::Lapa(lapa)));
    assert_eq!(private("privacy.initial_sigma = 0.2").0.level, NoiseLevel::InitialSigma(0.2));
    let (_, mixed) = private(
        "profile = \"paper\"\nmodel.norm = \"group\"\nlearn.clip = \"sample\"\n\
         privacy.basis = \"certified\"\nprivacy.epsilon = 1",
    );
    assert_eq!(mixed.sampling, BatchSampling::Poisson);
    let (full, learn) = private("privacy.epsilon = 1\nlearn.sampling = \"full\"");
    assert_eq!((learn.batch_fraction, full.adjacency), (1.0, Adjacency::ReplaceOne));
}

#[test]
fn what_proves_nothing_is_refused_with_the_reason() {
    for (text, expected) in [
        ("learn.local_epochs = 5", "does not go with `learn.update` = \"gradient\""),
        ("learn.update = \"epoch\"\nprivacy.epsilon = 8", "requires `learn.update` = \"gradient\""),
        ("learn.clip = \"device\"\nprivacy.epsilon = 8", "requires `learn.clip` = \"sample\""),
        (
            "profile = \"paper\"\nmodel.norm = \"group\"\nlearn = { update = \"epoch\", clip = \"sample\" }\n\
          privacy.epsilon = 8",
            "requires `learn.clip` = \"device\"",
        ),
        ("privacy = { epsilon = 1, initial_sigma = 1 }", "exclude each other"),
        ("privacy = { epsilon = 1, allocator = \"optimal-split\" }", "divides one total budget"),
        (
            "learn.sampling = \"full\"\nprivacy = { epsilon = 1, adjacency = \"zero-out\" }",
            "no proven sensitivity",
        ),
        (
            "learn.sampling = \"fixed\"\nprivacy = { epsilon = 1, adjacency = \"zero-out\" }",
            "no proven sensitivity",
        ),
        ("privacy = { allocator = \"lapa\", adjacency = \"replace-one\" }", "fixed in advance"),
        (
            "learn = { batch_fraction = 0.5, sampling = \"full\" }",
            "does not go with `learn.sampling` = \"full\"",
        ),
        (
            "profile = \"paper\"\nprivacy.epsilon = 1\nlearn.sampling = \"poisson\"",
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
        ("privacy.delta = 1", "`privacy.delta` = 1: expected"),
        ("privacy.basis = \"papre\"", "did you mean \"paper\"?"),
    ] {
        let error = read(text).unwrap_err();
        let shown = format!("{error} {}", error.help().unwrap_or_default());
        assert!(shown.contains(expected), "{text}: {shown}");
    }
}

#[test]
fn a_flag_that_sets_the_noise_another_way_wins_over_the_file() {
    let level = |text: &str, flag: &str| with_flags(text, &[flag]).unwrap().privacy.unwrap().level;
    let sigma = level("privacy.epsilon = 8", "privacy.initial_sigma=0.5");
    assert_eq!(sigma, NoiseLevel::InitialSigma(0.5));
    assert_eq!(level("privacy.initial_sigma = 1", "privacy.epsilon=2"), NoiseLevel::Epsilon(2.0));
    let both = with_flags("", &["privacy.initial_sigma=1", "privacy.epsilon=2"]);
    assert!(both.unwrap_err().to_string().contains("exclude each other"));
}
