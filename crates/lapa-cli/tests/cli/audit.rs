//! `lapa audit`.

use tempfile::TempDir;

use super::*;

/// Five small devices whose budgets are proved.
const CERTIFIED: &str = "\
profile = 'certified'
data.name = 'synthetic'
model.name = 'logistic'
run = { rounds = 6, seed = 3 }
partition.mix = { iid = 2, non_iid = 3, iid_samples = 100, non_iid_samples = 120 }
privacy.epsilon = 2
";

fn place(config: &str) -> TempDir {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("small.toml"), config).unwrap();
    place
}

const FIELDS: [&str; 8] = [
    "attack",
    "epsilon_lower",
    "epsilon_lower_gdp",
    "confidence",
    "epsilon_claimed_total",
    "epsilon_provable",
    "verdict",
    "reason",
];

#[test]
fn a_sound_run_is_not_refuted_and_leaves_a_page() {
    let place = place(CERTIFIED);
    let folder = place.path();
    lapa(folder).args(["run", "small.toml", "--out", "r", "--quiet"]).assert().success();
    let before = names(&folder.join("r"));
    let ledger = fs::read(folder.join("r/ledger.db")).unwrap();
    let arguments = ["audit", "r", "--attack", "canary,ledger", "--quiet", "--format", "json"];
    let findings = stdout_json(lapa(folder).args(arguments));
    let findings = findings.as_array().unwrap();
    let attacks: Vec<_> = findings.iter().map(|finding| finding["attack"].clone()).collect();
    assert_eq!(attacks, ["canary", "ledger"]);
    for finding in findings {
        assert_eq!(keys(finding)[..FIELDS.len()], FIELDS);
        assert_eq!(finding["verdict"], "not-refuted", "{finding}");
        assert_eq!(finding["epsilon_provable"], 2.0);
    }
    // The run is as it was, but for the audit.
    assert_eq!(fs::read(folder.join("r/ledger.db")).unwrap(), ledger);
    let mut after = names(&folder.join("r"));
    after.retain(|name| name != "audit");
    assert_eq!(after, before);
    let page = fs::read_to_string(folder.join("r/audit/audit.html")).unwrap();
    assert_eq!(pages::check(&page), Ok(()));
    assert!(page.contains("<h1>Audit of r</h1>") && page.contains("An audit can only refute."));
    let kept = fs::read_to_string(folder.join("r/audit/audit.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept.as_array().unwrap(), findings);
}

/// The printed formulas claim far less than one record can do.
#[test]
fn the_paper_s_claim_is_refuted_with_exit_code_1() {
    let place = place(&format!("{SMALL}[privacy]\nepsilon = 1\n"));
    let folder = place.path();
    let command = ["audit", "small.toml", "--attack", "mechanism", "--quiet"];
    let output = lapa(folder).args(command).assert().code(1).get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("This refutes the paper's sum over all devices"), "{text}");
    assert!(text.contains("Report: audits/small/audit.html"), "{text}");
    assert!(folder.join("audits/small/audit.json").is_file());
}

/// An array in a file, as NumPy writes it.
fn write_npy(path: &Path, descr: &str, dims: &[usize], bytes: &[u8]) {
    let dims: Vec<String> = dims.iter().map(|dim| format!("{dim},")).collect();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", dims.join(" "));
    header += &" ".repeat(63 - (header.len() + 10) % 64);
    let head = [b"\x93NUMPY\x01\x00", &(header.len() as u16 + 1).to_le_bytes()[..]].concat();
    fs::write(path, [&head, header.as_bytes(), b"\n", bytes].concat()).unwrap();
}

/// Color in bytes, and a table of floats below zero and far above one.
#[test]
fn color_and_tables_are_attacked_in_every_way() {
    let place = TempDir::new().unwrap();
    let color = place.path().join("arrays");
    fs::create_dir(&color).unwrap();
    for (name, count) in [("train", 120u32), ("test", 40)] {
        let value = |i: u32, at: u32| match at % 3 == i % 3 {
            true => 180 + (i * 7 + at * 3) % 60,
            false => (i * 5 + at * 11) % 40,
        };
        let bytes: Vec<u8> =
            (0..count).flat_map(|i| (0..192).map(move |at| value(i, at) as u8)).collect();
        let labels: Vec<u8> = (0..count).map(|i| (i % 3) as u8).collect();
        let x = color.join(format!("x_{name}.npy"));
        write_npy(&x, "|u1", &[count as usize, 8, 8, 3], &bytes);
        write_npy(&color.join(format!("y_{name}.npy")), "|u1", &[count as usize], &labels);
    }
    let row = |i: u32| {
        let (class, spread) = (i % 3, f64::from(i * 37 % 100) / 100.0);
        let class = f64::from(class);
        format!("{:.3},{},{:.3}\n", spread - 3.0 * class, i % 3, 90.0 * spread + 40.0 * class)
    };
    let table = (0..300).map(row).collect::<String>();
    fs::write(place.path().join("points.csv"), format!("x,label,y\n{table}")).unwrap();
    for (name, data) in [("color", "npz:arrays"), ("table", "csv:points.csv")] {
        let config = format!(
            "data.name = '{data}'\nmodel.name = 'logistic'\nrun = {{ rounds = 3, seed = 3 }}\n\
             partition = {{ scheme = 'iid', iid = {{ devices = 2 }} }}\nprivacy.epsilon = 2\n"
        );
        fs::write(place.path().join(format!("{name}.toml")), config).unwrap();
        let mut run = lapa(place.path());
        run.args(["run", &format!("{name}.toml"), "--out", name, "--quiet"]).assert().success();
        let arguments = ["audit", name, "--quiet", "--format", "json"];
        let findings = stdout_json(lapa(place.path()).args(arguments));
        let findings = findings.as_array().unwrap();
        let attacks: Vec<_> = findings.iter().map(|one| one["attack"].as_str().unwrap()).collect();
        assert_eq!(
            attacks,
            ["mechanism", "canary", "ledger", "membership", "inversion", "leakage"],
            "{name}"
        );
        for finding in findings {
            assert_ne!(finding["verdict"], "refuted", "{name}: {finding}");
        }
        let page = fs::read_to_string(place.path().join(name).join("audit/audit.html")).unwrap();
        assert_eq!(pages::check(&page), Ok(()));
        assert_eq!(page.contains("Reconstructed images"), name == "color");
        assert_eq!(page.contains("vectors, not images"), name == "table");
        assert_eq!(page.contains("random dots in the dark part"), name == "color");
    }
}

#[test]
fn what_cannot_be_audited_is_refused_with_a_reason() {
    let place = place(CERTIFIED);
    let folder = place.path();
    lapa(folder).args(["run", "small.toml", "--out", "r", "--quiet"]).assert().success();
    let refused = |arguments: &[&str], words: &str| {
        let error = failure(lapa(folder).arg("audit").args(arguments), 2);
        assert!(error.contains(words), "{error}");
    };
    refused(&["r", "-c", "run.seed=1"], "-c run.seed=1: r is a finished run");
    refused(&["small.toml", "--confidence", "1"], "--confidence = 1: expected a number above 0");
    refused(&["small.toml", "--attack", "guess"], "invalid value 'guess'");
    refused(&["nowhere.toml"], "cannot read nowhere.toml");
    refused(&["small.toml", "-c", "run.entropy=os"], "run.entropy = \"os\"");
    fs::remove_file(folder.join("r/summary.json")).unwrap();
    refused(&["r"], "not finished; finish it with `lapa run --resume r`");
    assert!(!folder.join("audits").exists() && !folder.join("r/audit").exists());
}
