//! `[radio]`, `[transmit]` and `[aggregate]`: defaults and refusals.

use lapa_wireless::fading::Fading;
use lapa_wireless::noma::{Receiver, SicOrder};
use lapa_wireless::uplink::DigitalConfig;

use super::{flags_refuse, read, refuses};
use crate::aggregate::{FedavgConfig, GroundMetric, RuleConfig};
use crate::aggregate::{Histograms, NoisyHistograms};
use crate::config::*;
use crate::radio::Threshold;
use crate::radio::UplinkConfig;

#[test]
fn an_empty_file_gives_the_papers_cell_and_an_ideal_uplink() {
    let Experiment { radio, transmit, aggregate, .. } = read("").unwrap();
    let expected = Radio {
        base_station: [-50.0, 0.0, 10.0],
        places: Places::Regions(vec![
            RegionSpec { x: [-10.0, 0.0], y: [-5.0, 5.0], devices: 7 },
            RegionSpec { x: [10.0, 20.0], y: [-5.0, 5.0], devices: 8 },
        ]),
        antennas: 15,
        carrier_hz: 915e6,
        path_loss_exponent: 3.76,
        base_gain_dbi: 5.0,
        device_gain_dbi: 0.0,
        noise_power_w: 1e-13,
        fading: Fading::Rayleigh,
        redraw_every: 0,
    };
    assert_eq!(radio, expected);
    let expected = Transmit {
        uplink: UplinkConfig::default(),
        power_w: Powers::All(0.075),
        max_power_w: 0.3,
        access: Access::Noma,
        receiver: Receiver::Matched,
        perfect_sic: true,
        sic_order: SicOrder::Power,
        scale: Scale::PerRelease,
        modulation: ModulationName::Qpsk,
        symbol_rate_hz: 1e6,
    };
    assert_eq!(transmit, expected);
    let expected = Aggregate {
        rule: RuleConfig::Fedavg(FedavgConfig {}),
        threshold: Threshold::None,
        below_threshold: BelowThreshold::Skip,
        none_selected: NoneSelected::Skip,
        renormalize: true,
    };
    assert_eq!(aggregate, expected);
}

#[test]
fn defaults_of_uplinks_follow_update_and_profile() {
    let uplink = |text: &str| read(text).unwrap().transmit.uplink;
    let digital = |bits, range| UplinkConfig::Digital(DigitalConfig { bits, range });
    for (text, range) in [
        ("", 0.05),
        ("learn.clip_norm = 3", 0.05 * 3.0),
        ("learn.update = \"epoch\"", 0.1),
        ("profile = \"paper\"", 2.0),
        ("profile = \"paper\"\nlearn.update = \"epoch\"", 2.0),
        ("learn.clip = \"none\"", 2.0),
    ] {
        let found = uplink(&format!("{text}\ntransmit.uplink = \"digital\""));
        assert_eq!(found, digital(8, range), "{text}");
        let text =
            format!("{text}\ntransmit = {{ uplink = \"signal\", signal.symbols = \"digital\" }}");
        let found = uplink(&text);
        assert_eq!(found.digital(), Some(DigitalConfig { bits: 8, range }), "{text}");
    }
    for (text, analog) in [
        ("", false),
        ("transmit.uplink = \"analog\"", true),
        ("transmit.uplink = \"digital\"", false),
        ("transmit.uplink = \"signal\"", true),
        ("transmit = { uplink = \"signal\", signal.symbols = \"digital\" }", false),
    ] {
        assert_eq!(uplink(text).is_analog(), analog, "{text}");
    }
}

#[test]
fn defaults_of_rules_follow_metric_and_privacy() {
    let rule = |text: &str| read(text).unwrap().aggregate.rule;
    let wasserstein = |text: &str| match rule(&format!("aggregate.rule = \"wasserstein\"\n{text}"))
    {
        RuleConfig::Wasserstein(config) => config,
        other => panic!("{other:?}"),
    };
    let bare = wasserstein("");
    assert_eq!((bare.metric, bare.floor), (GroundMetric::TotalVariation, 0.2));
    let labels = wasserstein("aggregate.wasserstein.metric = \"label-distance\"");
    assert_eq!((labels.metric, labels.floor), (GroundMetric::LabelDistance, 0.5));
    assert_eq!(wasserstein("aggregate.wasserstein.floor = 3").floor, 3.0);
    let noisy = |budget_fraction| Histograms::Noisy(NoisyHistograms { budget_fraction });
    for (text, histograms) in [
        ("", Histograms::Exact),
        ("profile = \"paper\"", Histograms::Exact),
        ("profile = \"paper\"\nprivacy.epsilon = 8", Histograms::Exact),
        ("privacy.epsilon = 8", noisy(0.02)),
        ("privacy.allocator = \"lapa\"", noisy(0.02)),
        ("privacy.epsilon = 8\naggregate.RULE.noisy.budget_fraction = 0.1", noisy(0.1)),
        ("privacy.epsilon = 8\naggregate.RULE.histograms = \"public\"", Histograms::Public),
        ("privacy.initial_sigma = 1\naggregate.RULE.histograms = \"public\"", Histograms::Public),
        ("aggregate.RULE.histograms = \"public\"", Histograms::Public),
    ] {
        for name in ["wasserstein", "noise-aware"] {
            let text = format!("aggregate.rule = \"{name}\"\n{text}").replace("RULE", name);
            assert_eq!(rule(&text).histograms(), Some(histograms), "{text}");
        }
    }
    for (text, expected) in [("", 0.3), ("aggregate.noise-aware.noise_weight = 2", 2.0)] {
        match rule(&format!("aggregate.rule = \"noise-aware\"\n{text}")) {
            RuleConfig::NoiseAware(config) => assert_eq!(config.noise_weight, expected),
            other => panic!("{other:?}"),
        }
    }
    let threshold = |text: &str| read(text).unwrap().aggregate.threshold;
    assert_eq!(threshold("aggregate.ser_threshold = 0.1"), Threshold::Ser(0.1));
    assert_eq!(threshold("aggregate.sinr_threshold_db = -4.3"), Threshold::SinrDb(-4.3));
}

#[test]
fn places_that_contradict_each_other_are_refused() {
    let three = "partition.mix = { iid = 1, non_iid = 2 }\n";
    refuses(
        &format!(
            "{three}[radio]\npositions = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]\n\
             regions = [{{ x = [0, 1], y = [0, 1], devices = 1 }}]\n"
        ),
        "lapa.toml:4:11: `radio.positions` and `radio.regions` exclude each other\n  help: remove \
         one of them",
    );
    refuses(
        &format!("{three}radio.positions = [[0, 0, 0], [1, 0, 0]]"),
        "lapa.toml:2:19: `radio.positions` has 2 entries, but there are 3 devices: expected one \
         [x, y, z] for each\n  help: give as many positions as devices, or use radio.regions",
    );
    refuses(
        "radio.regions = [{ x = [1, 2], y = [0, 1], devices = 1 }, \
         { x = [5, -5.5], y = [0, 1], devices = 1 }]",
        "lapa.toml:1:17: `radio.regions` has a region with x = [5, -5.5]: expected [min, max] with \
         min at most max\n  help: write x = [-5.5, 5]",
    );
    refuses(
        "[[radio.regions]]\nx = [0, 1]\ny = [3, 2]\ndevices = 1\n",
        "lapa.toml:1:1: `radio.regions` has a region with y = [3, 2]: expected [min, max] with min \
         at most max\n  help: write y = [2, 3]",
    );
    refuses(
        "radio.regions = [{ x = [0, 1], y = [0, 1], devices = 0 }]",
        "lapa.toml:1:17: `radio.regions` has no region with `devices` above 0\n  help: give each \
         region its share of the devices",
    );
    // A region of one point, and one without devices beside another, are places.
    read("radio.regions = [{ x = [1, 1], y = [2, 2], devices = 1 }]").unwrap();
    let none = "{ x = [0, 1], y = [0, 1], devices = 0 }";
    read(&format!("radio.regions = [{none}, {}]", none.replace("= 0 }", "= 2 }"))).unwrap();
}

#[test]
fn amplitudes_need_a_clip() {
    for uplink in ["analog", "signal"] {
        refuses(
            &format!("learn.clip = \"none\"\ntransmit.uplink = \"{uplink}\""),
            &format!(
                "lapa.toml:2:19: `transmit.uplink` = \"{uplink}\" sends amplitudes, whose power is \
                 bounded only if updates are clipped, but `learn.clip` = \"none\"\n  help: use \
                 learn.clip = \"device\" or \"sample\", or transmit.uplink = \"digital\""
            ),
        );
    }
    for clipless in
        ["\"digital\"", "\"signal\"\ntransmit.signal.symbols = \"digital\"", "\"ideal\""]
    {
        read(&format!("learn.clip = \"none\"\ntransmit.uplink = {clipless}")).unwrap();
    }
}

#[test]
fn powers_stay_below_the_largest() {
    refuses(
        "transmit.power_w = 0.31",
        "lapa.toml:1:20: `transmit.power_w` is 0.31, above `transmit.max_power_w` = 0.3: expected \
         from 0 to 0.3\n  help: lower the power, or raise transmit.max_power_w",
    );
    refuses(
        "transmit.max_power_w = 0.01",
        "lapa.toml:1:24: `transmit.power_w` is 0.075, above `transmit.max_power_w` = 0.01: expected \
         from 0 to 0.01\n  help: lower the power, or raise transmit.max_power_w",
    );
    let three = "partition.mix = { iid = 1, non_iid = 2 }\n";
    refuses(
        &format!("{three}transmit.power_w = [0.1, 0.4, 0.2]"),
        "lapa.toml:2:20: `transmit.power_w` of a device is 0.4, above `transmit.max_power_w` = \
         0.3: expected from 0 to 0.3\n  help: lower the power, or raise transmit.max_power_w",
    );
    refuses(
        &format!("{three}transmit.power_w = [0.1, 0.2]"),
        "lapa.toml:2:20: `transmit.power_w` has 2 numbers, but there are 3 devices: expected one \
         for each, or a single number\n  help: give as many powers as devices",
    );
    let powers = |text: &str| read(&format!("{three}{text}")).unwrap().transmit.power_w;
    assert_eq!(powers("transmit.power_w = 0"), Powers::All(0.0));
    assert_eq!(powers("transmit.power_w = 0.3"), Powers::All(0.3));
    let each = powers("transmit.power_w = [0, 0.3, 0.1]");
    assert_eq!([0, 1, 2].map(|device| each.of(device)), [0.0, 0.3, 0.1]);
    assert_eq!(powers("transmit.power_w = 0.075").of(9), 0.075);
}

#[test]
fn two_thresholds_are_refused() {
    refuses(
        "[aggregate]\nser_threshold = 0.1\nsinr_threshold_db = 3\n",
        "lapa.toml:3:21: `aggregate.ser_threshold` and `aggregate.sinr_threshold_db` exclude each \
         other\n  help: remove one of them",
    );
}

/// Their text is in the header of every checkpoint, which safetensors limits to 100 MB.
#[test]
fn histograms_of_very_many_devices_are_refused() {
    for rule in ["wasserstein", "kl", "js", "noise-aware"] {
        let text = |devices: u32| {
            format!(
                "privacy.epsilon = 8\naggregate.rule = \"{rule}\"\n[partition]\nscheme = \
                 \"virtual\"\nvirtual.devices = {devices}\n"
            )
        };
        assert!(read(&text(10_000)).is_ok());
        refuses(
            &text(1_000_000),
            &format!(
                "lapa.toml:2:18: `aggregate.rule` = \"{rule}\" needs a label histogram of each of the \
                 1000000 devices before round 1, about 250 MB in every checkpoint: expected at most \
                 10000 devices\n  help: use aggregate.rule = \"fedavg\" or \"fedadp\", or fewer devices"
            ),
        );
    }
}

#[test]
fn histograms_that_no_budget_pays_for_are_refused() {
    refuses(
        "privacy.epsilon = 8\n[aggregate]\nrule = \"wasserstein\"\nwasserstein.histograms = \"exact\"\n",
        "lapa.toml:4:26: `aggregate.wasserstein.histograms` = \"exact\" does not go with `privacy.basis` = \
         \"certified\": exact label histograms make epsilon infinite\n  help: use \
         aggregate.wasserstein.histograms = \"noisy\", or \"public\" if labels are no secret",
    );
    for profile in ["", "profile = \"paper\"\n", "profile = \"paper\"\nprivacy.epsilon = 8\n"] {
        let text = "aggregate = { rule = \"wasserstein\", wasserstein.histograms = \"noisy\" }";
        let line = profile.lines().count() + 1;
        refuses(
            &format!("{profile}{text}"),
            &format!(
                "lapa.toml:{line}:62: `aggregate.wasserstein.histograms` = \"noisy\" needs a budget that it is \
                 charged to: `privacy.basis` = \"certified\" with `privacy.epsilon`\n  help: use \
                 aggregate.wasserstein.histograms = \"public\" or \"exact\", or set privacy.epsilon"
            ),
        );
    }
    refuses(
        "privacy.initial_sigma = 2\naggregate.rule = \"wasserstein\"",
        "lapa.toml:1:25: `privacy.initial_sigma` sets the budget by the noise of the updates \
         alone, which leaves nothing for `aggregate.wasserstein.histograms` = \"noisy\"\n  help: use \
         privacy.epsilon, or aggregate.wasserstein.histograms = \"public\"",
    );
    refuses(
        "aggregate.rule = \"wasserstein\"\n\
         privacy = { epsilon = 1, adjacency = \"replace-one\" }",
        "lapa.toml:2:38: `privacy.adjacency` = \"replace-one\" with poisson batches can be costed \
         only as a plan of equal releases, to which `aggregate.wasserstein.histograms` = \"noisy\" adds \
         another one\n  help: use adjacency = \"zero-out\", or aggregate.wasserstein.histograms = \"public\"",
    );
    // In a sum of costs, a histogram is one more release.
    for good in [
        "privacy.epsilon = 1\nlearn.sampling = \"full\"",
        "privacy.adjacency = \"add-remove\"\nlearn.sampling = \"fixed\"",
        "privacy.adjacency = \"add-remove\"",
        "privacy = { noise = \"discrete-gaussian\", adjacency = \"replace-one\" }",
    ] {
        let text = format!("aggregate.rule = \"wasserstein\"\n{good}");
        let histograms = read(&text).unwrap().aggregate.rule.histograms();
        assert!(matches!(histograms, Some(Histograms::Noisy(_))), "{good}");
    }
}

#[test]
fn channel_noise_counts_only_where_it_can() {
    let trusted = |more: &str| format!("privacy = {{ channel_trust = 0.5{more} }}\n");
    refuses(
        &trusted(", epsilon = 1"),
        "lapa.toml:1:29: `privacy.channel_trust` = 0.5 does not go with `transmit.uplink` = \
         \"ideal\": only coordinates sent as amplitudes arrive with the receiver's noise\n  help: \
         use transmit.uplink = \"analog\", or remove channel_trust",
    );
    for uplink in ["uplink = \"digital\"", "uplink = \"signal\", signal.symbols = \"digital\""] {
        let error = read(&format!("{}transmit = {{ {uplink} }}", trusted(", epsilon = 1")));
        assert!(error.unwrap_err().message().contains("only coordinates sent as amplitudes"));
    }
    let noma = "`transmit.perfect_sic` = true, `transmit.access` = \"noma\" and `privacy.basis` = \
                \"certified\": devices decoded from one signal share one receiver noise, and anyone \
                who knows the others' values removes most of it\n  help: use transmit.access = \
                \"orthogonal\" (noise of its own for each device), transmit.perfect_sic = false, or \
                privacy.basis = \"paper\"";
    for uplink in ["analog", "signal"] {
        refuses(
            &format!("{}transmit.uplink = \"{uplink}\"", trusted(", epsilon = 1")),
            &format!("lapa.toml:1:29: `privacy.channel_trust` = 0.5 does not go with {noma}"),
        );
    }
    flags_refuse(
        "",
        &["privacy.epsilon=1", "privacy.channel_trust=1", "transmit.uplink=analog"],
        &format!("-c privacy.channel_trust=1: `privacy.channel_trust` = 1 does not go with {noma}"),
    );
    let orthogonal = "transmit = { uplink = \"analog\", access = \"orthogonal\" }";
    refuses(
        &format!("{}{orthogonal}", trusted(", epsilon = 1, noise = \"discrete-gaussian\"")),
        "lapa.toml:1:29: `privacy.channel_trust` = 0.5 does not go with `privacy.noise` = \
         \"discrete-gaussian\": no theorem at hand adds the two\n  help: use privacy.noise = \
         \"gaussian\", or remove channel_trust",
    );
    for good in [orthogonal, "transmit = { uplink = \"analog\", perfect_sic = false }"] {
        let found = read(&format!("{}{good}", trusted(", epsilon = 1"))).unwrap();
        assert_eq!(found.channel_trust(), 0.5);
        read(&format!("privacy = {{ channel_trust = 0 }}\n{good}")).unwrap();
    }
}

#[test]
fn keys_without_effect_are_refused() {
    refuses(
        "transmit = { access = \"orthogonal\", perfect_sic = false }",
        "lapa.toml:1:51: `transmit.perfect_sic` = false has no effect with `transmit.access` = \
         \"orthogonal\", where nothing interferes\n  help: remove perfect_sic, or use access = \
         \"noma\"",
    );
    refuses(
        "transmit.receiver = \"mmse\"",
        "lapa.toml:1:21: `transmit.receiver` = \"mmse\" has no effect where no interference is left \
         (perfect_sic = true, or access = \"orthogonal\"): every receiver is then the matched \
         one\n  help: set transmit.perfect_sic = false, or remove receiver",
    );
    assert!(read("transmit = { receiver = \"mmse\", perfect_sic = false }").is_ok());
    assert!(read("transmit.receiver = \"matched\"").is_ok());
}

/// Exact counts tell how many records there are, which add-remove makes a secret.
#[test]
fn public_labels_do_not_go_with_secret_sizes() {
    let text = "privacy = { epsilon = 8, adjacency = \"add-remove\" }\n\
                aggregate = { rule = \"wasserstein\", wasserstein.histograms = \"public\" }";
    let error = read(text).unwrap_err().to_string();
    assert!(error.contains("under which the number of records is a secret"), "{error}");
    assert!(read(&text.replace("public", "noisy")).is_ok());
    assert!(read(&text.replace("add-remove", "zero-out")).is_ok());
}

#[test]
fn channel_noise_needs_costs_that_can_differ() {
    let text = "privacy = { epsilon = 8, channel_trust = 1, adjacency = \"replace-one\" }\n\
                transmit = { uplink = \"analog\", access = \"orthogonal\" }";
    let error = read(text).unwrap_err().to_string();
    assert!(error.contains("can be costed only as a plan of equal releases"), "{error}");
    assert!(read(&text.replace("replace-one", "zero-out")).is_ok());
}
