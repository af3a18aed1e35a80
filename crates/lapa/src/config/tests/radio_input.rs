//! `[radio]`, `[transmit]` and `[aggregate]`: unknown keys, wrong types, flags, and what is written
//! back.

use super::{flags_refuse, read, refuses, with_flags};
use crate::config::*;
use crate::radio::Threshold;

#[test]
fn unknown_radio_keys_get_the_nearest_one() {
    let radio = "base_station, positions, regions, antennas, carrier_hz, path_loss_exponent, \
                 base_gain_dbi, device_gain_dbi, noise_power_w, fading, redraw_every";
    let transmit = "uplink, power_w, max_power_w, access, receiver, perfect_sic, sic_order, scale, \
                    modulation, symbol_rate_hz, analog, digital, signal, fixed";
    let aggregate = "rule, ser_threshold, sinr_threshold_db, below_threshold, none_selected, renormalize, fedadp, \
         wasserstein, kl, js, noise-aware";
    for (text, place, key, expected, help) in [
        ("[radio]\nantenas = 3\n", "2:1", "radio.antenas", radio, "did you mean `antennas`?"),
        (
            "[radio]\npower_w = 1\n",
            "2:1",
            "radio.power_w",
            radio,
            "`power_w` belongs to [transmit]",
        ),
        (
            "transmit.noise_power_w = 1",
            "1:10",
            "transmit.noise_power_w",
            transmit,
            "`noise_power_w` belongs to [radio]",
        ),
        ("[transmit]\nuplnk = 1\n", "2:1", "transmit.uplnk", transmit, "did you mean `uplink`?"),
        (
            "[aggregate]\nrules = \"fedavg\"\n",
            "2:1",
            "aggregate.rules",
            aggregate,
            "did you mean `rule`?",
        ),
        (
            "[aggregate]\nchannel_trust = 1\n",
            "2:1",
            "aggregate.channel_trust",
            aggregate,
            "`channel_trust` belongs to [privacy]",
        ),
    ] {
        let message = format!("lapa.toml:{place}: unknown key `{key}`: expected one of {expected}");
        refuses(text, &format!("{message}\n  help: {help}"));
    }
}

#[test]
fn wrong_types_lists_and_ranges_name_what_is_expected() {
    let meters = "a finite number from -1000000.0 to 1000000.0";
    let region = "a list, each { x, y, devices }";
    let power = "a finite number from 0 to 1000000.0";
    for (key, bad, expected) in [
        ("transmit.perfect_sic", "1", "true or false".to_string()),
        ("transmit.perfect_sic", "\"true\"", "true or false".into()),
        ("radio.base_station", "[1, 2]", format!("a list of 3, each {meters}")),
        ("radio.base_station", "[1, 2, 3, 4]", format!("a list of 3, each {meters}")),
        ("radio.base_station", "[1, 2, 2e6]", format!("a list of 3, each {meters}")),
        ("radio.base_station", "true", format!("a list of 3, each {meters}")),
        ("radio.positions", "[]", format!("a list, each a list of 3, each {meters}")),
        ("radio.positions", "[[0, 0]]", format!("a list, each a list of 3, each {meters}")),
        ("radio.positions", "[[0, 0, nan]]", format!("a list, each a list of 3, each {meters}")),
        ("radio.regions", "[]", region.into()),
        ("radio.regions", "3", region.into()),
        ("radio.regions", "[{ x = [0, 1], y = [0, 1] }]", region.into()),
        ("radio.regions", "[{ x = [0], y = [0, 1], devices = 1 }]", region.into()),
        ("radio.regions", "[{ x = [0, 1], y = [0, 1], devices = 1.5 }]", region.into()),
        ("radio.regions", "[{ x = [0, 1], y = [0, 1], devices = 1, z = 1 }]", region.into()),
        ("radio.antennas", "0", "a whole number from 1 to 1024".into()),
        ("radio.noise_power_w", "0", "a finite number from 1e-25 to 1".into()),
        ("radio.path_loss_exponent", "0.5", "a finite number from 1 to 10".into()),
        ("radio.redraw_every", "-1", "a whole number from 0 to 4294967295".into()),
        ("transmit.power_w", "-0.1", format!("{power}, or a list, each {power}")),
        ("transmit.power_w", "[0.1, -0.1]", format!("{power}, or a list, each {power}")),
        ("transmit.power_w", "[]", format!("{power}, or a list, each {power}")),
        ("transmit.power_w", "\"all\"", format!("{power}, or a list, each {power}")),
        ("transmit.symbol_rate_hz", "0", "a finite number from 1 to 1000000000000.0".into()),
        ("transmit.digital.bits", "17", "a whole number from 1 to 16".into()),
        ("transmit.digital.bits", "0", "a whole number from 1 to 16".into()),
        ("transmit.digital.range", "0", "a finite number from 1e-9 to 1000000000.0".into()),
        ("aggregate.wasserstein.floor", "0", "a finite number from 0.001 to 100".into()),
        (
            "aggregate.wasserstein.noisy.budget_fraction",
            "0.6",
            "a finite number from 1e-6 to 0.5".into(),
        ),
        ("aggregate.ser_threshold", "0", "a finite number from 1e-12 to 1".into()),
        ("aggregate.ser_threshold", "1.5", "a finite number from 1e-12 to 1".into()),
        ("aggregate.sinr_threshold_db", "inf", "a finite number from -300 to 300".into()),
        ("privacy.channel_trust", "1.1", "a finite number from 0 to 1".into()),
        ("privacy.channel_trust", "-0.1", "a finite number from 0 to 1".into()),
    ] {
        let column = key.len() + 4;
        let message = format!("lapa.toml:1:{column}: `{key}` = {bad}: expected {expected}");
        refuses(&format!("{key} = {bad}"), &message);
    }
}

#[test]
fn wrong_words_get_the_list_and_a_suggestion() {
    refuses(
        "transmit.uplink = \"analogue\"",
        "lapa.toml:1:19: `transmit.uplink` = \"analogue\": expected one of \"ideal\", \"analog\", \
         \"digital\", \"signal\"\n  help: did you mean \"analog\"?",
    );
    refuses(
        "transmit.modulation = \"16qam\"",
        "lapa.toml:1:23: `transmit.modulation` = \"16qam\": expected one of \"bpsk\", \"qpsk\", \
         \"16-qam\", \"64-qam\", \"256-qam\"\n  help: did you mean \"16-qam\"?",
    );
    refuses(
        "aggregate.rule = \"fedavgg\"",
        "lapa.toml:1:18: `aggregate.rule` = \"fedavgg\": expected one of \"fedavg\", \"fedadp\", \
         \"wasserstein\", \"kl\", \"js\", \"noise-aware\"\n  help: did you mean \"fedavg\"?",
    );
}

#[test]
fn flags_set_lists_and_tables_in_lists() {
    let experiment = with_flags(
        "[partition.mix]\niid = 1\nnon_iid = 1\n",
        &[
            "radio.regions=[{x=[0,1],y=[0,1],devices=1}, {x=[2,3],y=[-1,1],devices=2}]",
            "transmit.power_w=[0.1, 0.2]",
            "radio.base_station=[1,2,3]",
            "transmit.perfect_sic=false",
            "transmit.modulation=64-qam",
        ],
    )
    .unwrap();
    assert_eq!(
        experiment.radio.places,
        Places::Regions(vec![
            RegionSpec { x: [0.0, 1.0], y: [0.0, 1.0], devices: 1 },
            RegionSpec { x: [2.0, 3.0], y: [-1.0, 1.0], devices: 2 },
        ])
    );
    assert_eq!(experiment.transmit.power_w, Powers::Each(vec![0.1, 0.2]));
    assert_eq!(experiment.radio.base_station, [1.0, 2.0, 3.0]);
    assert!(!experiment.transmit.perfect_sic);
    assert_eq!(experiment.transmit.modulation, ModulationName::Qam64);
    let placed =
        with_flags("partition.mix = { iid = 1, non_iid = 0 }", &["radio.positions=[[1, 2, 3]]"]);
    assert_eq!(placed.unwrap().radio.places, Places::Positions(vec![[1.0, 2.0, 3.0]]));
    flags_refuse(
        "",
        &["radio.regions=[{x=[0,1],y=[0,1]}]"],
        "-c radio.regions=[{x=[0,1],y=[0,1]}]: `radio.regions` = [{x=[0,1],y=[0,1]}]: expected a \
         list, each { x, y, devices }",
    );
    flags_refuse(
        "",
        &["transmit.power_w=[0.1,0.2]"],
        "-c transmit.power_w=[0.1,0.2]: `transmit.power_w` has 2 numbers, but there are 15 devices: \
         expected one for each, or a single number\n  help: give as many powers as devices",
    );
    flags_refuse(
        "",
        &["radio.regions={x=[0,1]}"],
        "-c radio.regions={x=[0,1]}: `{x=[0,1]}` is a table, but a flag sets one key\n  help: give \
         one flag per key, for example run.rounds=30",
    );
}

#[test]
fn lists_and_regions_are_written_and_read_back() {
    let two = "partition.mix = { iid = 1, non_iid = 1 }";
    for flags in [
        &["radio.positions=[[1, 2, 3], [-4.5, 0, 1e3]]", "transmit.power_w=[0, 0.25]"][..],
        &["radio.regions=[{x=[0,1],y=[-2.5,1],devices=1},{x=[5,5],y=[0,1],devices=3}]"],
        &["transmit.uplink=digital", "transmit.digital.bits=5", "transmit.modulation=16-qam"],
        &[
            "transmit.uplink=signal",
            "transmit.signal.symbols=digital",
            "transmit.access=orthogonal",
        ],
        &[
            "aggregate.rule=wasserstein",
            "privacy.epsilon=2",
            "aggregate.wasserstein.noisy.budget_fraction=0.25",
        ],
        &[
            "aggregate.rule=wasserstein",
            "aggregate.wasserstein.metric=label-distance",
            "profile=paper",
        ],
        &["aggregate.rule=fedadp", "aggregate.sinr_threshold_db=-3", "radio.fading=none"],
        &[
            "privacy.epsilon=1",
            "privacy.channel_trust=0.75",
            "transmit.uplink=analog",
            "transmit.access=orthogonal",
            "aggregate.none_selected=error",
        ],
    ] {
        let experiment = with_flags(two, flags).unwrap();
        let text = experiment.to_toml();
        assert_eq!(read(&text).unwrap(), experiment, "{text}");
    }
}

/// Two thresholds in one file are a mistake; a flag is a change of mind.
#[test]
fn a_flag_for_one_threshold_replaces_the_other() {
    let threshold =
        |text: &str, flags: &[&str]| with_flags(text, flags).unwrap().aggregate.threshold;
    let text = "aggregate.sinr_threshold_db = 0";
    assert_eq!(threshold(text, &["aggregate.ser_threshold=0.1"]), Threshold::Ser(0.1));
    let text = "aggregate.ser_threshold = 0.01";
    assert_eq!(threshold(text, &["aggregate.sinr_threshold_db=3"]), Threshold::SinrDb(3.0));
    assert_eq!(threshold(text, &["transmit.uplink=ideal"]), Threshold::None);
    let flags = ["transmit.uplink=ideal", "aggregate.ser_threshold=0.1"];
    assert_eq!(threshold(text, &flags), Threshold::Ser(0.1));
    let both = "transmit.uplink = \"ideal\"\naggregate.ser_threshold = 0.01";
    assert_eq!(threshold(both, &[]), Threshold::Ser(0.01));
}
