//! Two runs on the same data in any order, against a ledger of integers.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Costs are whole numbers of 2⁻²⁰, so that sums are exact.
const UNIT: f64 = 1.0 / (1 << 20) as f64;

#[derive(Clone, Debug)]
enum Step {
    /// A run takes its next round.
    Next { run: usize, costs: [u32; 2] },
    /// A run repeats an earlier round.
    Again { run: usize, back: u32 },
    /// The process ends and another one resumes.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let run = 0..2usize;
    prop_oneof![
        6 => (run.clone(), prop::array::uniform2(0..200_000u32))
            .prop_map(|(run, costs)| Step::Next { run, costs }),
        3 => (run, 0..5u32).prop_map(|(run, back)| Step::Again { run, back }),
        1 => Just(Step::Reopen),
    ]
}

/// The slow twin: what was spent, and what was decided under each key.
#[derive(Default)]
struct Twin {
    spent: [u32; 2],
    own: [[u32; 2]; 2],
    decided: HashMap<(usize, u32), ([u32; 2], [u32; 2])>,
}

const RUNS: [&str; 2] = ["first", "second"];
const CAPACITY: [u32; 2] = [1 << 20, 1 << 19];
const FLOOR: u32 = 1000;

impl Twin {
    fn decide(&mut self, run: usize, round: u32, costs: [u32; 2], again: bool) -> [u32; 2] {
        let mut granted = [0; 2];
        for device in 0..2 {
            let left = CAPACITY[run].saturating_sub(self.spent[device]);
            let cost = costs[device].min(left);
            granted[device] = if cost < FLOOR { 0 } else { cost };
            self.spent[device] += granted[device];
            self.own[run][device] += granted[device];
        }
        if !again {
            self.decided.insert((run, round), (costs, granted));
        }
        granted
    }
}

fn open(path: &std::path::Path) -> Ledger {
    let mut ledger = Ledger::open(path).unwrap();
    for (run, capacity) in RUNS.iter().zip(CAPACITY) {
        let budget = budget(f64::from(capacity) * UNIT);
        let left = ledger.begin_run(run, &data(), &[(0, budget.clone()), (1, budget)]).unwrap();
        assert_eq!(left, [f64::from(capacity) * UNIT; 2]);
    }
    ledger
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn interleaved_runs_match_a_ledger_of_integers(
        steps in prop::collection::vec(step(), 1..40),
        repeats in prop::array::uniform2(prop_oneof![Just(Repeat::Replay), Just(Repeat::ChargeAgain)]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = open(&path);
        let mut twin = Twin::default();
        let mut rounds = [0u32; 2];
        for step in steps {
            let (run, at, costs, expected) = match step {
                Step::Reopen => {
                    drop(ledger);
                    ledger = open(&path);
                    continue;
                }
                Step::Next { run, costs } => {
                    rounds[run] += 1;
                    (run, rounds[run], costs, twin.decide(run, rounds[run], costs, false))
                }
                Step::Again { run, back } => {
                    let at = rounds[run].saturating_sub(back);
                    let Some((costs, granted)) = twin.decided.get(&(run, at)).copied() else {
                        continue;
                    };
                    let expected = match repeats[run] {
                        Repeat::Replay => granted,
                        Repeat::ChargeAgain => twin.decide(run, at, costs, true),
                    };
                    (run, at, costs, expected)
                }
            };
            let requests = [0, 1].map(|d| request(d as u32, f64::from(costs[d]) * UNIT));
            let grants = record_round(&mut ledger, RUNS[run], at, repeats[run], f64::from(FLOOR) * UNIT, &requests,
                &mut |_, cost| Ok::<_, LedgerError>((event(cost), cost)),
            ).unwrap();
            for device in 0..2 {
                prop_assert_eq!(cost(&grants[device]), f64::from(expected[device]) * UNIT);
            }
        }
        for device in 0..2 {
            let spent = ledger.spent("data", device as u32).unwrap();
            prop_assert_eq!(spent, f64::from(twin.spent[device]) * UNIT);
            for (run, own) in RUNS.iter().zip(&twin.own) {
                let recorded = ledger.own_spent(run, device as u32, None).unwrap();
                prop_assert_eq!(recorded, f64::from(own[device]) * UNIT);
            }
        }
    }
}
