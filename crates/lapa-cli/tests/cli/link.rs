//! `lapa link`: tables, plots, sweeps, refusals. No data set can be had in these tests.

use tempfile::TempDir;

use super::*;

const KEYS: [&str; 12] = [
    "device",
    "region",
    "distance_m",
    "path_loss_db",
    "gain_db",
    "power_w",
    "snr_db",
    "sinr_db",
    "ser",
    "selected",
    "sends",
    "energy_j",
];

/// The rows of the quickstart with some flags.
fn rows(folder: &Path, flags: &[&str]) -> Vec<Value> {
    let mut command = lapa_alone(folder);
    let value = stdout_json(command.args(["link", "--format", "json"]).args(flags));
    // Sweeps are lists.
    value.get("devices").unwrap_or(&value).as_array().unwrap().clone()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Q(x) = ½erfc(x/√2) by the Maclaurin series of erf: for |x| up to 4 good to 1e-12.
fn q_function(x: f64) -> f64 {
    let z = x * std::f64::consts::FRAC_1_SQRT_2;
    let (mut term, mut sum) = (z, z);
    for n in 1..200 {
        let n = f64::from(n);
        term *= -z * z / n;
        sum += term / (2.0 * n + 1.0);
    }
    0.5 - sum / std::f64::consts::PI.sqrt()
}

#[test]
fn the_quickstart_has_links_without_any_data() {
    let place = TempDir::new().unwrap();
    let rows = rows(place.path(), &[]);
    assert_eq!(rows.len(), 15);
    for (device, row) in rows.iter().enumerate() {
        assert_eq!(keys(row), KEYS);
        assert_eq!(row["device"], device);
        assert_eq!(keys(&row["selected"]), ["0.1", "0.01", "0.001"]);
        // The quickstart's threshold.
        assert_eq!(row["sends"], number(row, "sinr_db") >= 0.0);
        // 915 MHz, an exponent of 3.76, gains of 5 and 0 dBi; then the noise of 10⁻¹³ W.
        let wavelengths = number(row, "distance_m") * 915e6 / 299_792_458.0;
        let loss = 37.6 * (4.0 * std::f64::consts::PI * wavelengths).log10() - 5.0;
        assert!((loss - number(row, "path_loss_db")).abs() < 1e-9, "{row}");
        let snr = number(row, "gain_db") + 10.0 * number(row, "power_w").log10() + 130.0;
        assert!((snr - number(row, "snr_db")).abs() < 1e-9, "{row}");
        // 21880 coordinates at a million symbols per second and 75 mW.
        assert!((number(row, "energy_j") - 0.075 * 0.02188).abs() < 1e-12, "{row}");
        for (key, passed) in row["selected"].as_object().unwrap() {
            let most: f64 = key.parse().unwrap();
            assert_eq!(*passed, number(row, "ser") <= most, "{row}");
        }
    }
    let in_region = |region: u32| rows.iter().filter(|row| row["region"] == region).count();
    assert_eq!([in_region(1), in_region(2)], [7, 8]);
    assert_eq!(names(place.path()), ["link.png", "link.svg"]);
}

#[test]
fn the_error_rate_is_that_of_qpsk_at_the_printed_sinr() {
    let place = TempDir::new().unwrap();
    for row in rows(place.path(), &["-c", "transmit.perfect_sic=false"]) {
        let q = q_function(10f64.powf(number(&row, "sinr_db") / 20.0));
        let ser = 2.0 * q - q * q;
        assert!((number(&row, "ser") - ser).abs() < 1e-10, "{row}");
        assert!(number(&row, "sinr_db") <= number(&row, "snr_db"), "{row}");
    }
}

#[test]
fn links_follow_from_the_seed_and_the_round() {
    let place = TempDir::new().unwrap();
    let first = rows(place.path(), &["--seed", "5"]);
    assert_eq!(first, rows(place.path(), &["-c", "run.seed=5"]));
    let other = rows(place.path(), &["--seed", "6"]);
    assert_ne!(first[0]["distance_m"], other[0]["distance_m"]);
    let redrawn = ["--seed", "5", "-c", "radio.redraw_every=2", "--round"];
    let round = |round: &str| rows(place.path(), &[&redrawn[..], &[round]].concat());
    assert_eq!(round("2"), first);
    let third = round("3");
    assert_eq!(third[0]["path_loss_db"], first[0]["path_loss_db"]);
    assert_ne!(third[0]["gain_db"], first[0]["gain_db"]);
}

#[test]
fn positions_come_from_the_configuration() {
    let place = TempDir::new().unwrap();
    let config = "\
data.name = 'idx:nowhere'
[partition]
scheme = 'iid'
iid.devices = 2
[radio]
base_station = [0, 0, 0]
positions = [[3, 4, 0], [2, 3, 6]]
[transmit]
power_w = [0.1, 0]
[aggregate]
ser_threshold = 0.05
";
    fs::write(place.path().join("two.toml"), config).unwrap();
    let rows = rows(place.path(), &["two.toml"]);
    assert_eq!([number(&rows[0], "distance_m"), number(&rows[1], "distance_m")], [5.0, 7.0]);
    assert!(rows.iter().all(|row| row["region"].is_null()));
    // Without power there is no signal: SER is that of guessing one of four points.
    assert_eq!((&rows[1]["snr_db"], number(&rows[1], "ser")), (&"-inf".into(), 0.75));
    assert_eq!(keys(&rows[0]["selected"]), ["0.1", "0.01", "0.001", "0.05"]);
    assert_eq!(
        (&rows[0]["selected"]["0.05"], &rows[1]["selected"]["0.05"]),
        (&true.into(), &false.into())
    );
}

#[test]
fn the_table_explains_itself() {
    let place = TempDir::new().unwrap();
    let show = |flags: &[&str]| stdout(lapa_alone(place.path()).arg("link").args(flags).assert());
    let ideal = ["-c", "transmit.uplink=ideal", "-c", "aggregate.sinr_threshold_db=4.3"];
    let text = show(&[&ideal[..], &["--out", "plots"]].concat());
    let header = text.lines().next().unwrap();
    for column in ["region", "distance (m)", "SINR (dB)", "SER", "≤0.001", "≥4.3dB", "energy (J)"]
    {
        assert!(header.contains(column), "{text}");
    }
    assert!(text.contains("noise -100.0 dBm") && text.contains("power 18.8 dBm"), "{text}");
    assert!(text.contains("10 devices transmitting: airtime 0.0219 s"), "{text}");
    assert!(text.contains("\"ideal\" uses these links for thresholds only"), "{text}");
    assert_eq!(names(&place.path().join("plots")), ["link.png", "link.svg"]);

    // Ten of the fifteen have a SINR of 4.3 dB.
    let text = show(&[&ideal[2..], &["-c", "transmit.uplink=analog"]].concat());
    assert!(text.contains("10 devices transmitting: airtime 0.0219 s"), "{text}");

    // 8 bits, two to a symbol, one of 14 devices after the other; a byte per coordinate.
    let text = show(&["-c", "transmit.uplink=digital", "-c", "transmit.access=orthogonal"]);
    assert!(text.contains("airtime 1.2253 s") && text.contains("in 21880 bytes"), "{text}");
    assert!(!text.contains("thresholds only"), "{text}");

    let text = show(&["-c", "partition.scheme=iid", "-c", "partition.iid.devices=61"]);
    let told = "the 10 of 61 devices with the largest and the 10 with the smallest SINR";
    assert!(text.contains(told), "{text}");
    // Two lines of header, ten devices, a gap, ten devices, from the best to the worst.
    let sinr = |line: &str| line.split_whitespace().nth(7).unwrap().parse::<f64>().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let shown: Vec<f64> = [&lines[2..12], &lines[13..23]].concat().into_iter().map(sinr).collect();
    assert!(lines[12].trim().starts_with('…'), "{text}");
    assert!(shown.is_sorted_by(|a, b| a >= b), "{text}");
}

/// Of more than a thousand devices JSON has the ends, quantiles and a histogram; `--all` lists them.
#[test]
fn many_links_are_few_numbers() {
    let place = TempDir::new().unwrap();
    let many = ["-c", "partition.scheme=virtual", "-c", "partition.virtual.devices=1200"];
    let part = ["-c", "run.participation=0.1"];
    let json = |flags: &[&str]| {
        let mut command = lapa_alone(place.path());
        stdout_json(command.args(["link", "--format", "json"]).args(many).args(flags))
    };
    let (few, all) = (json(&[]), json(&["--all"]));
    let rows = |value: &Value| value["devices"].as_array().unwrap().clone();
    let (ends, list) = (rows(&few), rows(&all));
    assert_eq!((ends.len(), list.len()), (20, 1200));
    let mut ordered = list.clone();
    ordered.sort_by(|a, b| number(b, "sinr_db").total_cmp(&number(a, "sinr_db")));
    assert_eq!(ends, [&ordered[..10], &ordered[1190..]].concat());
    for key in ["count", "sinr_db", "ser", "histogram"] {
        assert_eq!(few[key], all[key], "{key}");
    }
    assert_eq!(few["count"], 1200);
    assert_eq!(few["sinr_db"]["max"], ordered[0]["sinr_db"]);
    let steps = few["histogram"].as_array().unwrap();
    assert!(steps.len() < 50);
    for step in steps {
        let [from, to] = [0, 1].map(|end| step["sinr_db"][end].as_f64().unwrap());
        let inside = |row: &&Value| (from..to).contains(&number(row, "sinr_db"));
        assert_eq!(step["devices"], list.iter().filter(inside).count(), "{step}");
    }
    let total: u64 = steps.iter().map(|step| step["devices"].as_u64().unwrap()).sum();
    assert_eq!(total, 1200);
    let show = |flags: &[&str]| {
        stdout(lapa_alone(place.path()).arg("link").args(many).args(part).args(flags).assert())
    };
    let (text, long) = (show(&[]), show(&["--all"]));
    assert!(text.lines().count() < 40 && long.lines().count() > 1200, "{text}");
    assert!(text.contains("run.participation = 0.1: 120 of these devices in each round"), "{text}");
}

/// The noise power that the paper prints, 10⁻³ W, is louder than any device.
#[test]
fn the_printed_noise_power_leaves_nobody() {
    let place = TempDir::new().unwrap();
    for row in rows(place.path(), &["-c", "radio.noise_power_w=1e-3"]) {
        assert!(number(&row, "snr_db") <= -70.0, "{row}");
        assert!(row["selected"].as_object().unwrap().values().all(|passed| passed == false));
    }
}

#[test]
fn sweeps_vary_one_quantity() {
    let place = TempDir::new().unwrap();
    // Four points to a decade of power are 2.5 dB apart; the default channel has the same fading at
    // all antennas, so twice as many hear twice as much.
    for (quantity, key, decibels) in [
        ("power", "power_w", 2.5),
        ("noise", "noise_power_w", -2.5),
        ("antennas", "antennas", 10.0 * 2f64.log10()),
    ] {
        let points = rows(place.path(), &["--sweep", quantity]);
        assert!(points.len() >= 7);
        for pair in points.windows(2) {
            assert_eq!(
                keys(&pair[0]),
                [key, "ser_median", "ser_min", "ser_max", "sinr_db_median", "selected"]
            );
            assert!(number(&pair[0], key) < number(&pair[1], key));
            let [a, b] = [0, 1].map(|i| number(&pair[i], "sinr_db_median"));
            assert!((b - a - decibels).abs() < 1e-9, "{quantity}: {pair:?}");
            let [a, b] = [0, 1].map(|i| number(&pair[i], "ser_max"));
            assert!((a - b) * decibels > 0.0, "{quantity}: {pair:?}");
        }
        assert!(points[0]["selected"]["0.1"].as_u64().unwrap() <= 15);
        let plots = [".png", ".svg"].map(|ending| format!("link-{quantity}{ending}"));
        assert!(plots.iter().all(|plot| place.path().join(plot).is_file()));
    }
    // Where the varied quantity has the configured value, the links are the configured ones: the
    // median of fifteen is one of them.
    let noise = rows(place.path(), &["--sweep", "noise"]);
    let point =
        noise.iter().find(|point| (number(point, "noise_power_w") * 1e13 - 1.0).abs() < 1e-9);
    let mut rates: Vec<f64> =
        rows(place.path(), &[]).iter().map(|row| number(row, "ser")).collect();
    rates.sort_by(f64::total_cmp);
    assert!((number(point.unwrap(), "ser_median") / rates[7] - 1.0).abs() < 1e-9);
    let text = stdout(lapa_alone(place.path()).args(["link", "--sweep", "antennas"]).assert());
    assert!(text.contains("antennas") && text.contains("link-antennas.svg"), "{text}");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = TempDir::new().unwrap();
    let zero_forcing = ["-c", "transmit.receiver=zero-forcing", "-c", "transmit.perfect_sic=false"];
    let text = failure(lapa_alone(place.path()).arg("link").args(zero_forcing), 2);
    assert!(
        text.contains("zero forcing cannot separate") && text.contains("15 antennas"),
        "{text}"
    );
    let mut sweep = lapa_alone(place.path());
    let text = failure(sweep.args(["link", "--sweep", "antennas"]).args(zero_forcing), 2);
    assert!(text.contains("with radio.antennas = 1:") && text.contains("zero forcing"), "{text}");
    for (flags, part) in [
        (&["--sweep", "distance"][..], "possible values: power, noise, antennas"),
        (&["--round", "0"], "0 is not in 1.."),
        (&["-c", "radio.antennas=0"], "radio.antennas"),
        (&["-c", "radio.antenas=3"], "did you mean `antennas`?"),
        (&["missing.toml"], "cannot read missing.toml"),
    ] {
        let text = failure(lapa_alone(place.path()).arg("link").args(flags), 2);
        assert!(text.contains(part), "{text}");
    }
    assert!(names(place.path()).is_empty());
    fs::write(place.path().join("file"), "").unwrap();
    let text = failure(lapa_alone(place.path()).args(["link", "--out", "file"]), 2);
    assert!(text.contains("--out file"), "{text}");
}
