//! ε spent in a ledger, per device and on both bases.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::path::Path;

use lapa::budget::{PrivacyError, round_up};
use lapa::observe::number;
use lapa_privacy::accountant::{Accountant, Gdp, Pld, Rdp, composed};
use lapa_privacy::ledger::{Declaration, Entry, Ledger};
use lapa_privacy::{AccountError, Event, Mechanism};
use serde::Serialize;
use serde_json::json;

use crate::failure::CommandResult;
use crate::output::{self, Column, Format, count as count_of, or_dash, wrap};

/// One device's releases, costed.
#[derive(Serialize)]
struct Row {
    data: String,
    device: u32,
    runs: usize,
    releases: usize,
    /// The largest budget declared; "inf" where nothing is enforced.
    #[serde(with = "number")]
    declared: f64,
    delta: f64,
    /// The paper's sum of this device, over all its runs.
    #[serde(with = "number")]
    claimed: f64,
    /// The least that an accountant can prove for what was released.
    #[serde(with = "number")]
    provable: f64,
    /// The same, if no noise of the radio channel is counted.
    #[serde(with = "number")]
    without_channel: f64,
    #[serde(with = "number::optional")]
    gdp: Option<f64>,
    #[serde(with = "number::optional")]
    rdp: Option<f64>,
    #[serde(with = "number::optional")]
    pld: Option<f64>,
}

/// Meaning of the figures, in words.
const MEANING: [(&str, &str); 3] = [
    (
        "declared",
        "the largest budget that was enforced (∞ if none was), the guarantee unless a later run raised it \
         after an earlier run's releases were seen",
    ),
    ("claimed", "the paper's ε, summed over the releases of this device"),
    (
        "provable",
        "ε of the recorded releases by the tightest accountant that applies; for a schedule that was \
         chosen adaptively it is an odometer reading, not a guarantee",
    ),
];

pub fn execute(path: &Path, format: Format) -> CommandResult {
    // The folder of a run has its ledger inside.
    let inside = path.join("ledger.db");
    let path = if inside.is_file() { &inside } else { path };
    let ledger = Ledger::open_read_only(path)?;
    let (devices, silent) = read(&ledger)?;
    let mut known = Known::new();
    let rows = devices.iter().map(|(key, device)| device.row(key, &mut known));
    let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
    let meaning = BTreeMap::from(MEANING);
    let value = json!({ "ledger": path, "meaning": meaning, "devices": rows, "unlisted": silent });
    output::print(format, &value, || text(path, &rows, silent))
}

/// A device's releases, counted as they are read.
struct Device {
    /// The largest budget declared for it.
    declared: f64,
    delta: f64,
    runs: BTreeSet<String>,
    releases: usize,
    claimed: f64,
    mechanisms: Counts,
    /// The same, if no noise of the channel is counted.
    without_channel: Counts,
}

/// ε by GDP, RDP and PLD of releases that were costed already: many devices have the same.
type Known = HashMap<String, [Option<f64>; 3]>;

/// Equal releases, which are composed together.
type Counts = Vec<(Mechanism, u32)>;

/// Devices of the ledger, by data and number.
type Devices = BTreeMap<(String, u32), Device>;

/// All devices that released something. Those that declared a budget and did not are listed, too, if
/// all fit a table; else the second value is how many they are.
fn read(ledger: &Ledger) -> Result<(Devices, usize), PrivacyError> {
    let declarations = ledger.declarations()?;
    let declared = distinct(&declarations);
    let count_of_all = declared.iter().map(|(_, range)| range.clone().count()).sum::<usize>();
    let budgets = Budgets::new(&declarations);
    let mut devices = Devices::new();
    if count_of_all <= output::MOST_ROWS {
        for (data, range) in declared {
            let own = range.map(|device| ((data.to_owned(), device), budgets.device(data, device)));
            devices.extend(own);
        }
    }
    ledger.each_release(|Entry { run, data, device, event, .. }| {
        let made = || budgets.device(&data, device);
        let own = devices.entry((data.clone(), device)).or_insert_with(made);
        own.releases += 1;
        own.claimed += event.claimed_epsilon(own.delta);
        own.runs.insert(run);
        count(&mut own.mechanisms, event.mechanism()?);
        let silent = without_channel(event).mechanism()?;
        count(&mut own.without_channel, silent);
        Ok::<_, PrivacyError>(())
    })?;
    let silent = count_of_all.saturating_sub(devices.len());
    Ok((devices, silent))
}

/// The devices that declared a budget, each once, where declarations come by data and devices.
fn distinct(declarations: &[Declaration]) -> Vec<(&str, RangeInclusive<u32>)> {
    let mut all: Vec<(&str, RangeInclusive<u32>)> = Vec::new();
    for Declaration { data, devices, .. } in declarations {
        let known = all.last().filter(|(last, _)| last == data).map(|(_, known)| *known.end());
        let next = known.map_or(0, |known| known.saturating_add(1));
        if known.is_none_or(|known| known < *devices.end()) {
            all.push((data, next.max(*devices.start())..=*devices.end()));
        }
    }
    all
}

/// Declarations by data and run: those of a run do not overlap, and come by their devices.
struct Budgets<'a>(HashMap<&'a str, HashMap<&'a str, Vec<&'a Declaration>>>);

impl<'a> Budgets<'a> {
    fn new(declarations: &'a [Declaration]) -> Self {
        let mut all: HashMap<&str, HashMap<&str, Vec<_>>> = HashMap::new();
        for declared in declarations {
            all.entry(&declared.data).or_default().entry(&declared.run).or_default().push(declared);
        }
        Self(all)
    }

    /// A device without releases, and the largest of its budgets. Each run's releases stay within
    /// what it declared, whatever others spent before: over all runs the largest is the guarantee.
    fn device(&self, data: &str, device: u32) -> Device {
        let runs = self.0.get(data).into_iter().flat_map(HashMap::values);
        let own = runs.filter_map(|run| {
            let after = run.partition_point(|declared| *declared.devices.start() <= device);
            run[..after].last().filter(|declared| declared.devices.contains(&device))
        });
        let largest = own
            .map(|declared| &declared.budget)
            .max_by(|a, b| a.epsilon.total_cmp(&b.epsilon).then(a.delta.total_cmp(&b.delta)));
        Device {
            declared: largest.map_or(f64::INFINITY, |budget| budget.epsilon),
            delta: largest.map_or(0.0, |budget| budget.delta),
            runs: BTreeSet::new(),
            releases: 0,
            claimed: 0.0,
            mechanisms: Vec::new(),
            without_channel: Vec::new(),
        }
    }
}

fn count(counts: &mut Counts, mechanism: Mechanism) {
    match counts.iter_mut().find(|(known, _)| *known == mechanism) {
        Some((_, count)) => *count += 1,
        None => counts.push((mechanism, 1)),
    }
}

impl Device {
    fn row(&self, (data, device): &(String, u32), known: &mut Known) -> Result<Row, AccountError> {
        let mut costs = |counts: &Counts| -> Result<_, AccountError> {
            let key = format!("{counts:?} {}", self.delta);
            if let Some(&costs) = known.get(&key) {
                return Ok(costs);
            }
            let costs = costs(counts, self.delta)?;
            known.insert(key, costs);
            Ok(costs)
        };
        let [gdp, rdp, pld] = costs(&self.mechanisms)?;
        let best =
            |costs: [Option<f64>; 3]| costs.into_iter().flatten().fold(f64::INFINITY, f64::min);
        Ok(Row {
            data: data.clone(),
            device: *device,
            runs: self.runs.len(),
            releases: self.releases,
            declared: self.declared,
            delta: self.delta,
            claimed: self.claimed,
            provable: best([gdp, rdp, pld]),
            without_channel: best(costs(&self.without_channel)?),
            gdp,
            rdp,
            pld,
        })
    }
}

/// The event, with no noise of the channel counted.
fn without_channel(mut event: Event) -> Event {
    if let Event::Release(release) = &mut event {
        release.kappa = 0.0;
    }
    event
}

/// ε of all events together by GDP, RDP and PLD, where they apply.
fn costs(mechanisms: &Counts, delta: f64) -> Result<[Option<f64>; 3], AccountError> {
    let cost = |accountant: Box<dyn Accountant>| match composed(
        accountant,
        mechanisms.iter().copied(),
        delta,
    ) {
        Err(AccountError::Unsupported { .. } | AccountError::DeltaTooSmall { .. }) => Ok(None),
        epsilon => epsilon.map(Some),
    };
    let (gdp, rdp) = (cost(Box::new(Gdp::new()))?, cost(Box::<Rdp>::default())?);
    Ok([gdp, rdp, cost(Box::<Pld>::default())?])
}

fn text(path: &Path, rows: &[Row], silent: usize) -> String {
    let columns: [Column<Row>; 10] = [
        ("data", |row| row.data.chars().take(8).collect()),
        (">device", |row| row.device.to_string()),
        (">runs", |row| row.runs.to_string()),
        (">releases", |row| row.releases.to_string()),
        (">declared", |row| round_up(row.declared)),
        (">paper's sum", |row| round_up(row.claimed)),
        (">provable", |row| round_up(row.provable)),
        (">gdp", |row| or_dash(row.gdp)),
        (">rdp", |row| or_dash(row.rdp)),
        (">pld", |row| or_dash(row.pld)),
    ];
    let heading = |name| if name == "claimed" { "paper's sum" } else { name };
    let meaning: Vec<String> =
        MEANING.iter().map(|(name, words)| format!("{}: {words}.", heading(name))).collect();
    let header = columns.each_ref().map(|(name, _)| *name);
    let cells = |i: usize| columns.iter().map(|(_, cell)| cell(&rows[i])).collect();
    let provable: Vec<f64> = rows.iter().map(|row| row.provable).collect();
    let mut table = output::bounded(&header, &provable, ("provable ε", round_up), cells);
    if silent > 0 {
        let devices = count_of(silent, "more device");
        table += &format!("{devices} declared a budget and released nothing\n");
    }
    let mut text = format!(
        "{}\n\n{table}\n{}\n",
        path.display(),
        wrap(&format!("ε at the declared δ of each device. {}", meaning.join(" ")), ""),
    );
    let worst = |of: fn(&Row) -> f64| rows.iter().map(of).fold(0.0, f64::max);
    let (provable, silent) = (worst(|row| row.provable), worst(|row| row.without_channel));
    if silent > provable {
        let channel = format!(
            "Channel noise is counted as far as the runs trust it (privacy.channel_trust); without \
             it the worst device has ε = {} instead of {}.",
            round_up(silent),
            round_up(provable)
        );
        text += &format!("{}\n", wrap(&channel, ""));
    }
    text
}

#[cfg(test)]
mod tests {
    use lapa_privacy::ledger::DeclaredBudget;

    use super::*;

    /// Two runs with a budget for every device or few of them, on one data set of two.
    fn declarations() -> Vec<Declaration> {
        let declared = |data: &str, run: &str, devices, epsilon| Declaration {
            run: run.into(),
            data: data.into(),
            partition: String::new(),
            devices,
            budget: DeclaredBudget { kind: String::new(), epsilon, delta: 1e-5, capacity: 1.0 },
        };
        let own = (0..50).map(|i| declared("a", "one", i..=i, f64::from(i * 7 % 11)));
        let mut all: Vec<_> = own.collect();
        all.extend([
            declared("a", "two", 20..=39, 6.0),
            declared("a", "two", 40..=79, 3.0),
            declared("b", "two", 5..=6, 9.0),
            declared("b", "three", 5..=5, 1.0),
            declared("b", "one", 9..=9, 2.0),
        ]);
        all.sort_by(|a, b| (&a.data, a.devices.start()).cmp(&(&b.data, b.devices.start())));
        all
    }

    #[test]
    fn budgets_are_those_of_a_scan_over_all_declarations() {
        let all = declarations();
        let budgets = Budgets::new(&all);
        for (data, device) in ["a", "b", "c"].into_iter().flat_map(|d| (0..90).map(move |i| (d, i)))
        {
            let own = all.iter().filter(|d| d.data == data && d.devices.contains(&device));
            let largest = own.map(|d| d.budget.epsilon).max_by(f64::total_cmp);
            let found = budgets.device(data, device).declared;
            assert_eq!(found, largest.unwrap_or(f64::INFINITY), "{data} {device}");
        }
    }

    #[test]
    fn each_device_is_counted_once() {
        let all = declarations();
        let once =
            |(data, range): (_, RangeInclusive<u32>)| range.map(move |device| (data, device));
        let found: Vec<_> = distinct(&all).into_iter().flat_map(once).collect();
        let a = (0..80).map(|device| ("a", device));
        let expected: Vec<_> = a.chain([5, 6, 9].map(|device| ("b", device))).collect();
        assert_eq!(found, expected);
    }
}
