//! Kills, full disks and crowds: a run that was resumed is the run that nothing disturbed, and a
//! budget is never passed.

use std::process::Child;
use std::thread::sleep;

use super::*;

/// Ways to run that differ in what they write and remember.
const VARIANTS: [&[&str]; 8] = [
    &[],
    &["privacy.allocator=lapa"],
    &["privacy.allocator=arb"],
    &["aggregate.rule=wasserstein"],
    &["profile=paper"],
    &["run.ledger=shared.db", "learn.sampling=fixed"],
    &[
        "transmit.uplink=analog",
        "privacy.channel_trust=1",
        "control.noise=top-up",
        "transmit.access=orthogonal",
        "learn.sampling=fixed",
    ],
    &["run.entropy=os", "privacy.noise=discrete-gaussian"],
];

fn spawn(place: &Path, arguments: &[&str]) -> Child {
    lapa(place, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn killed_runs_of_every_kind_end_as_if_nothing_had_happened() {
    for (number, changes) in VARIANTS.iter().enumerate() {
        for case in cases(1, 34) {
            let name = format!("variant {number}, kill {case}");
            let mut dice = Dice::new(7, 100 * number as u64 + case);
            kill_and_compare(changes, &mut dice, &name);
        }
    }
}

fn kill_and_compare(changes: &[&str], dice: &mut Dice, case: &str) {
    let (whole, hit) = (place(), place());
    let begun = lapa::clock::now();
    assert!(survives(whole.path(), &run_arguments("run", changes), case).status.success());
    let time = begun.elapsed();
    let ledger = if changes.iter().any(|change| change.starts_with("run.ledger")) {
        "shared.db"
    } else {
        "run/ledger.db"
    };
    let mut spent = vec![0.0; 5];
    for _ in 0..3 {
        let arguments = if hit.path().join("run").exists() {
            vec!["run", "--resume", "run", "--quiet"]
        } else {
            run_arguments("run", changes)
        };
        kill_after(hit.path(), &arguments, time.mul_f64(dice.below(1000) as f64 / 1000.0));
        if hit.path().join(ledger).exists()
            && let Some(now) = provable(hit.path(), ledger, case)
        {
            for (now, before) in now.iter().zip(&spent) {
                assert!(now >= before, "{case}: the ledger forgets");
            }
            spent.splice(.., now);
        }
    }
    let arguments = if hit.path().join("run").exists() {
        vec!["run", "--resume", "run", "--quiet"]
    } else {
        run_arguments("run", changes)
    };
    let output = survives(hit.path(), &arguments, case);
    assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
    let [one, other] = [&whole, &hit].map(|place| place.path().join("run"));
    // Real entropy draws anew; its repeated rounds are charged again, within the budget.
    if !changes.contains(&"run.entropy=os") {
        assert!(results(&one) == results(&other), "{case}: another result");
    }
    let figures = provable(hit.path(), ledger, case).unwrap();
    if !changes.contains(&"profile=paper") {
        assert!(figures.iter().all(|&figure| figure <= 8.0), "{case}: {figures:?}");
    }
}

/// Starts the program and kills it, unless it has finished by itself.
pub fn kill_after(place: &Path, arguments: &[&str], time: Duration) {
    let mut child = spawn(place, arguments);
    sleep(time);
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn a_killed_sweep_keeps_its_cells() {
    let sweep = [
        "sweep",
        "siege.toml",
        "--grid",
        "privacy.epsilon=2,8",
        "--seeds",
        "2",
        "--quiet",
        "-c",
        "run.rounds=6",
        "--out",
        "sweep",
    ];
    let whole = place();
    let begun = lapa::clock::now();
    assert!(survives(whole.path(), &sweep, "the whole sweep").status.success());
    let time = begun.elapsed();
    let figures = |place: &Path| fs::read_to_string(place.join("sweep/sweep.json")).unwrap();
    for case in cases(1, 36) {
        let (hit, mut dice) = (place(), Dice::new(12, case));
        for _ in 0..2 {
            kill_after(hit.path(), &sweep, time.mul_f64(dice.below(1000) as f64 / 1000.0));
        }
        assert!(survives(hit.path(), &sweep, "a killed sweep").status.success());
        assert_eq!(figures(hit.path()), figures(whole.path()), "case {case}");
    }
}

#[test]
fn processes_on_one_ledger_pass_no_budget() {
    for case in cases(1, 7) {
        let place = place();
        let place = place.path();
        let changes = ["run.ledger=shared.db", "learn.sampling=fixed"];
        let outs: Vec<String> = (0..4).map(|run| format!("run-{run}")).collect();
        let mut children: Vec<Child> =
            outs.iter().map(|out| spawn(place, &run_arguments(out, &changes))).collect();
        let mut dice = Dice::new(8, case);
        sleep(Duration::from_millis(dice.below(400) as u64));
        let killed = dice.below(children.len());
        let _ = children[killed].kill();
        for child in &mut children {
            let status = child.wait().unwrap();
            // One is killed; those that find nothing left are refused.
            assert!(matches!(status.code(), None | Some(0..=1)), "{status}");
        }
        if place.join(&outs[killed]).exists() {
            survives(place, &["run", "--resume", &outs[killed], "--quiet"], "the killed one");
        }
        let figures = provable(place, "shared.db", "after all").unwrap();
        assert!(figures.iter().all(|&figure| figure <= 8.0), "case {case}: {figures:?}");
    }
}

/// A run whose disk is full says so, and goes on when there is room again. Needs the right to
/// mount; elsewhere it says that it was skipped.
#[test]
fn a_full_disk_loses_nothing() {
    let whole = place();
    survives(whole.path(), &run_arguments("run", &[]), "the whole run");
    let whole = results(&whole.path().join("run"));
    for case in cases(3, 70) {
        let place = place();
        let place = place.path();
        let disk = place.join("disk");
        fs::create_dir(&disk).unwrap();
        let mount = |options: &str| {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&disk);
            mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let size = 60 + Dice::new(9, case).below(680);
        if !mount(&format!("size={size}k")) {
            eprintln!("skipped: a small disk cannot be mounted here");
            return;
        }
        let unmount = Unmount(&disk);
        let name = format!("a disk of {size} KiB");
        survives(place, &run_arguments("disk/run", &[]), &name);
        assert!(mount("remount,size=64m"), "{name} does not grow");
        let arguments = if disk.join("run").exists() {
            vec!["run", "--resume", "disk/run", "--quiet"]
        } else {
            run_arguments("disk/run", &[])
        };
        let output = survives(place, &arguments, &name);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(results(&disk.join("run")) == whole, "{name}: another result");
        drop(unmount);
    }
}

/// Unmounts at the end of a test, also of one that fails.
struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
