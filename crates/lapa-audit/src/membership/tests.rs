//! Curves, ratios, coins and guesses against values from elsewhere, and whole attacks on small runs.

use std::ops::ControlFlow;

use lapa::config::{Experiment, Override};
use lapa::data::{DataName, Dataset, digits};
use serde_json::Value;

use super::lira::{Gaussian, Reference, scaled_confidence};
use super::*;
use crate::Verdict;

/// A hash, for scores that Python can have too.
fn unit(n: u32) -> f64 {
    let mut h = n.wrapping_mul(2_654_435_761);
    h ^= h >> 15;
    h = h.wrapping_mul(2_246_822_519);
    h ^= h >> 13;
    f64::from(h >> 12) / f64::from(1 << 20)
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-12, "{a} {b}");
}

/// Three members and two others; one of each has the score 2. By hand: of 6 pairs, the member wins
/// in 4 and ties in 1.
#[test]
fn a_small_curve_is_that_of_a_hand() {
    let roc = Roc::new(&[3.0, 2.0, 1.0, 2.0, 0.0], &[true, true, true, false, false]);
    let expected = [(0.0, 0.0), (0.0, 1.0 / 3.0), (0.5, 2.0 / 3.0), (0.5, 1.0), (1.0, 1.0)];
    assert_eq!(roc.points, expected);
    near(roc.auc(), 4.5 / 6.0);
    near(roc.tpr_at(0.0), 1.0 / 3.0);
    near(roc.tpr_at(0.6), 1.0);
    near(roc.balanced_accuracy(), 0.75);
}

/// scikit-learn 1.9.1, `roc_auc_score` and `roc_curve(drop_intermediate=False)`, and the standard
/// error of DeLong et al. from all pairs in numpy: for scores with many ties, and with none.
#[test]
fn areas_and_rates_match_scikit_learn() {
    let members: Vec<bool> = (0..400).map(|i| unit(i) < 0.45).collect();
    let score = |i: u32| unit(1000 + i) + if members[i as usize] { 0.3 } else { 0.0 };
    let plain: Vec<f64> = (0..400).map(score).collect();
    let tied: Vec<f64> = plain.iter().map(|s| (20.0 * s).floor()).collect();
    for (scores, auc, error, rates, balanced) in [
        (
            tied,
            0.703_829_082_976_002_3,
            0.025_442_972_554_260_115,
            [0.322_751_322_751_322_73, 0.216_931_216_931_216_92, 0.216_931_216_931_216_92],
            0.631_021_339_552_145_2,
        ),
        (
            plain,
            0.703_829_082_976_002_3,
            0.025_512_143_036_372_985,
            [0.328_042_328_042_328, 0.222_222_222_222_222_2, 0.222_222_222_222_222_2],
            0.639_509_516_286_767_4,
        ),
    ] {
        let roc = Roc::new(&scores, &members);
        assert_eq!((roc.members, roc.others), (189, 211));
        near(roc.auc(), auc);
        let [low, high] = roc.auc_interval(1.5);
        near(low, auc - 1.5 * error);
        near(high, auc + 1.5 * error);
        for (fpr, tpr) in [0.1, 0.01, 0.001].into_iter().zip(rates) {
            near(roc.tpr_at(fpr), tpr);
        }
        near(roc.balanced_accuracy(), balanced);
    }
}

/// N(2, 1) against N(0, 4) at 1: −½ + ln 2 + ⅛.
#[test]
fn the_likelihood_ratio_has_its_closed_form() {
    let reference = Reference {
        member: Gaussian { mean: 2.0, variance: 1.0 },
        other: Gaussian { mean: 0.0, variance: 4.0 },
    };
    near(reference.ln_ratio(1.0), -0.5 + 2f64.ln() + 0.125);
    // Of equal variances it is linear: (μ₁ − μ₀)(x − (μ₁ + μ₀)/2)/σ².
    let other = Gaussian { mean: 0.0, variance: 1.0 };
    near(Reference { other, ..reference }.ln_ratio(1.75), 1.5);
}

#[test]
fn confidences_are_log_odds_and_do_not_saturate() {
    let logits = [1.0f32, 0.5, -2.0];
    let sum: f64 = logits.iter().map(|&z| f64::from(z).exp()).sum();
    for (label, &z) in logits.iter().enumerate() {
        let p = f64::from(z).exp() / sum;
        near(scaled_confidence(&logits, label), (p / (1.0 - p)).ln());
    }
    near(scaled_confidence(&[500.0, 0.0, 0.0], 0), 500.0 - 2f64.ln());
    near(mean_loss(&[-800.0, 0.0], &[true, false], true), 800.0);
    near(mean_loss(&[-800.0, 0.0], &[true, false], false), 2f64.ln());
}

/// Two records, four shadows: means of two values each, variances of all around them.
#[test]
fn few_shadows_share_their_variance() {
    let shadows = Shadows {
        confidences: vec![vec![5.0, 1.0], vec![7.0, 3.0], vec![0.0, 9.0], vec![2.0, 9.0]],
        members: vec![vec![true, false], vec![true, false], vec![false, true], vec![false, true]],
    };
    let references: Vec<Reference> = shadows.references(None).into_iter().flatten().collect();
    assert_eq!(references[0].member, Gaussian { mean: 6.0, variance: 1.0 });
    assert_eq!(references[0].other, Gaussian { mean: 1.0, variance: 2.0 });
    assert_eq!(references[1].member, Gaussian { mean: 9.0, variance: 1.0 });
    assert_eq!(references[1].other, Gaussian { mean: 2.0, variance: 2.0 });
    let one_sided = Shadows { confidences: vec![vec![1.0]], members: vec![vec![true]] };
    assert_eq!(one_sided.scores(None, &[3.0]), [0.0]);
}

#[test]
fn guesses_are_the_surest_and_never_contradict_each_other() {
    // Swaps: margins 3, −1 and 2.
    let swapped = Guesses::new(&[4.0, 0.0, 2.0, 1.0, 1.0, 0.0], 3);
    let coins = [true, true, false];
    assert_eq!([1, 2, 3].map(|count| swapped.correct(&coins, count)), [1, 1, 1]);
    assert_eq!(swapped.correct(&[true, false, true], 3), 3);
    // Drops: the highest is taken for heads, the lowest for tails, and so on inwards.
    let dropped = Guesses::new(&[0.5, 9.0, -3.0, 0.6, 0.7], 5);
    assert_eq!(dropped.correct(&[false, true, false, true, true], 5), 5);
    assert_eq!(
        [1, 2, 3].map(|count| dropped.correct(&[true, true, true, false, false], count)),
        [1, 1, 1]
    );
}

fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 60, seed = 3, threads = 2 }
        model = { name = 'mlp', norm = 'none' }
        learn = { batch_fraction = 0.5 }
        partition.mix = { iid = 2, non_iid = 2, iid_samples = [20, 40], non_iid_samples = [20, 40] }
        transmit.uplink = 'ideal'
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

/// Small digits with a third of the labels wrong, which can only be learned by heart.
fn noisy_digits() -> Dataset {
    let mut data = digits(600, 200);
    for (i, label) in (0..).zip(&mut data.train.labels) {
        if unit(i) < 0.33 {
            *label = (10.0 * unit(7000 + i)) as u8;
        }
    }
    assert_eq!(data.name, DataName::Synthetic);
    data
}

fn candidates(changes: &[&str], most: usize) -> Candidates {
    Candidates::new(&experiment(changes), &noisy_digits(), most, 5).unwrap()
}

fn counts(flips: &[Vec<bool>], coin: usize) -> usize {
    flips.iter().filter(|coins| coins[coin]).count()
}

#[test]
fn coins_are_balanced_over_shadows_and_fair_for_the_target() {
    let candidates = candidates(&[], 1000);
    let coins = candidates.len();
    assert!(coins > 80, "{coins}");
    for (shadows, allowed) in [(8, 4..=4), (9, 4..=5)] {
        let flips = candidates.shadow_coins(shadows, 5);
        assert!((0..coins).all(|coin| allowed.contains(&counts(&flips, coin))));
    }
    // Within 4 standard deviations of the half: α < 10⁻⁴ for each of the 21.
    let fair = |heads: usize, of: usize| {
        let (heads, of) = (heads as f64, of as f64);
        assert!((heads - 0.5 * of).abs() < 2.0 * of.sqrt(), "{heads} of {of}");
    };
    let heads = |coins: &[bool]| coins.iter().filter(|&&c| c).count();
    (0..20).for_each(|seed| fair(heads(&candidates.target_coins(seed)), coins));
    fair(candidates.shadow_coins(9, 5).iter().map(|c| heads(c)).sum(), 9 * coins);
}

/// One coin changes one record: dropped with its size declared as before, or swapped for one that
/// nobody has, of the same label.
#[test]
fn runs_that_differ_in_one_coin_are_neighbors() {
    for (changes, swaps) in [(&[][..], true), (&["privacy.epsilon=8"][..], false)] {
        let candidates = candidates(changes, 40);
        assert_eq!(candidates.swaps, swaps);
        let (heads, sizes) = (candidates.partition(&[true; 40]), candidates.sizes());
        let records = candidates.records();
        assert_eq!(records.len(), if swaps { 80 } else { 40 });
        for coin in 0..40 {
            let mut coins = [true; 40];
            coins[coin] = false;
            let tails = candidates.partition(&coins);
            let mut changed = 0;
            for (k, (a, b)) in heads.devices.iter().zip(&tails.devices).enumerate() {
                assert_eq!(a.samples.len(), sizes[k] as usize);
                assert_eq!(b.label_counts.iter().sum::<u32>() as usize, b.samples.len());
                let gone: Vec<_> = a.samples.iter().filter(|s| !b.samples.contains(s)).collect();
                let came: Vec<_> = b.samples.iter().filter(|s| !a.samples.contains(s)).collect();
                assert_eq!(came.len(), if swaps { gone.len() } else { 0 });
                if let [record] = gone[..] {
                    changed += 1;
                    assert_eq!(*record, records[coin]);
                    let expected: Vec<_> = records[40..].iter().skip(coin).take(1).collect();
                    assert_eq!(came, expected);
                    assert_eq!(a.label_counts == b.label_counts, swaps);
                }
            }
            assert_eq!(changed, 1);
        }
    }
}

const CLAIM: Statement =
    Statement { epsilon_claimed_total: 8.0, epsilon_provable: 8.0, delta: 1e-5 };

fn attacked(changes: &[&str], scale: Scale) -> Finding {
    let subject = Subject::new(experiment(changes), noisy_digits()).unwrap();
    let options = Options::new(0.95, Effort::Quick, 11).unwrap();
    let mut heard = Vec::new();
    let mut listener = |progress: Progress<'_>| {
        heard.push((progress.done, progress.of));
        ControlFlow::Continue(())
    };
    let findings = run_at(scale, &subject, &CLAIM, &options, &mut listener).unwrap();
    let of = scale.shadows as u64 + 1;
    assert_eq!(heard, (1..=of).map(|done| (done, of)).collect::<Vec<_>>());
    findings.into_iter().next().unwrap()
}

fn figure(finding: &Finding, path: &str) -> f64 {
    let value = Value::Object(finding.figures.clone());
    value.pointer(path).and_then(Value::as_f64).unwrap()
}

const SMALL: Scale = Scale { shadows: 12, candidates: 400 };

/// Without noise the records are learned by heart: with 1 − α = 95 % the area is well above ½, and
/// LiRA sees more than the loss alone.
#[test]
fn an_overfit_model_tells_its_members() {
    let finding = attacked(&[], SMALL);
    assert!(figure(&finding, "/lira/auc_low") > 0.65, "{:?}", finding.figures);
    assert!(figure(&finding, "/loss_threshold/auc_low") > 0.55, "{:?}", finding.figures);
    assert!(finding.epsilon_lower.unwrap() > 0.5, "{:?}", finding.epsilon_lower);
    let gap = figure(&finding, "/mean_loss_others") - figure(&finding, "/mean_loss_members");
    assert!(gap > 0.1, "{gap}");
    assert_eq!(finding.exhibits.len(), 4);
}

/// A certified ε = 1 on so few records leaves nothing to see: the interval of α = 5 % holds ½.
#[test]
fn a_certified_run_tells_nothing() {
    let finding = attacked(&["privacy.epsilon=1"], SMALL);
    for attack in ["lira", "loss_threshold"] {
        let end = |end: &str| figure(&finding, &format!("/{attack}/auc_{end}"));
        assert!(end("low") < 0.5 && end("high") > 0.5, "{:?}", finding.figures);
    }
    assert_eq!(finding.verdict, Verdict::NotRefuted);
}

#[test]
fn findings_do_not_depend_on_threads() {
    let scale = Scale { shadows: 3, candidates: 40 };
    let of = |threads: &str| {
        let finding = attacked(&["run.rounds=3", threads], scale);
        serde_json::to_string(&finding).unwrap()
    };
    let one = of("run.threads=1");
    assert_eq!(one, of("run.threads=2"));
    assert_eq!(one, of("run.threads=3"));
}

/// Warnings of repetitions were lost once.
#[test]
fn a_warning_of_all_repetitions_is_heard_once() {
    let sizes = ["partition.mix.non_iid=0", "partition.mix.iid_samples=100"];
    let privacy = ["run.rounds=1", "privacy.epsilon=2", "privacy.delta=0.01"];
    let changes = [&sizes[..], &privacy].concat();
    let subject = Subject::new(experiment(&changes), noisy_digits()).unwrap();
    let options = Options::new(0.95, Effort::Quick, 11).unwrap();
    let mut heard = Vec::new();
    let mut listener = |progress: Progress<'_>| {
        heard.extend(progress.warning.map(str::to_owned));
        ControlFlow::Continue(())
    };
    let scale = Scale { shadows: 3, candidates: 40 };
    run_at(scale, &subject, &CLAIM, &options, &mut listener).unwrap();
    assert!(heard.len() == 1 && heard[0].contains("privacy.delta"), "{heard:?}");
}

#[test]
fn a_listener_can_break_off() {
    let subject = Subject::new(experiment(&[]), noisy_digits()).unwrap();
    let options = Options::new(0.95, Effort::Quick, 11).unwrap();
    let mut heard = 0;
    let result = run(&subject, &CLAIM, &options, &mut |_| {
        heard += 1;
        if heard < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(matches!(result, Err(AuditError::Cancelled(_))));
    assert_eq!(heard, 2);
}

/// Too few to tell anything is said, not judged.
#[test]
fn nothing_to_attack_is_not_judged() {
    let subject = Subject::new(experiment(&[]), noisy_digits()).unwrap();
    let options = Options::new(0.95, Effort::Quick, 11).unwrap();
    let quiet: &mut Listener<'_> = &mut |_| ControlFlow::Continue(());
    for scale in [Scale { shadows: 8, candidates: 0 }, Scale { shadows: 1, candidates: 10 }] {
        let findings = run_at(scale, &subject, &CLAIM, &options, quiet).unwrap();
        assert_eq!(findings[0].verdict, Verdict::NotJudged);
        assert!(findings[0].epsilon_lower.is_none() && !findings[0].reason.is_empty());
    }
}
