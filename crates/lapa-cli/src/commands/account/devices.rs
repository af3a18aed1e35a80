//! Devices of a ledger, read and costed one by one: no more of them are in memory.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use lapa::budget::PrivacyError;
use lapa::observe::number;
use lapa_privacy::accountant::{Accountant, Gdp, Pld, Rdp, composed};
use lapa_privacy::ledger::{Declaration, Entry, Ledger};
use lapa_privacy::{AccountError, Event, Mechanism};
use serde::Serialize;

use crate::failure::Failure;

/// One device's releases, costed.
#[derive(Serialize)]
pub struct Row {
    pub data: String,
    pub device: u32,
    pub runs: usize,
    pub releases: usize,
    /// The largest budget declared; "inf" where nothing is enforced.
    #[serde(with = "number")]
    pub declared: f64,
    delta: f64,
    /// The paper's sum of this device, over all its runs.
    #[serde(with = "number")]
    pub claimed: f64,
    /// The least that an accountant can prove for what was released.
    #[serde(with = "number")]
    pub provable: f64,
    /// The same, if no noise of the radio channel is counted.
    #[serde(with = "number")]
    pub without_channel: f64,
    #[serde(with = "number::optional")]
    pub gdp: Option<f64>,
    #[serde(with = "number::optional")]
    pub rdp: Option<f64>,
    #[serde(with = "number::optional")]
    pub pld: Option<f64>,
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

/// Most different sets of releases whose ε is remembered.
const MOST_KNOWN: usize = 10_000;

/// A ledger that is read device by device.
pub struct Devices<'a> {
    ledger: &'a Ledger,
    declarations: &'a [Declaration],
    /// Devices that declared a budget.
    pub count: usize,
}

impl<'a> Devices<'a> {
    pub fn new(ledger: &'a Ledger, declarations: &'a [Declaration]) -> Self {
        let ranges = distinct(declarations).into_iter().map(|(_, range)| range);
        Self { ledger, declarations, count: ranges.map(Iterator::count).sum() }
    }

    /// Costs the devices one by one, by data and number; those without releases if `silent`.
    pub fn each(
        &self,
        silent: bool,
        mut read: impl FnMut(Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let budgets = Budgets::new(self.declarations);
        let mut known = Known::new();
        let mut done =
            |data: &str, number, device: &Device| read(device.row(data, number, &mut known)?);
        let all = |(data, range): (&'a str, RangeInclusive<u32>)| range.map(move |i| (data, i));
        let mut others = distinct(self.declarations).into_iter().flat_map(all).peekable();
        let mut current: Option<(String, u32, Device)> = None;
        self.ledger.each_by_device(|Entry { run, data, device: number, event, .. }| {
            let same = |(known, device, _): &mut _| *known == data && *device == number;
            if !current.as_mut().is_some_and(same) {
                if let Some((data, number, device)) = current.take() {
                    done(&data, number, &device)?;
                }
                let before = |other: &(&str, u32)| *other < (&*data, number);
                while let Some((data, number)) = others.next_if(before) {
                    if silent {
                        done(data, number, &budgets.device(data, number))?;
                    }
                }
                others.next_if(|other| *other == (&*data, number));
                let device = budgets.device(&data, number);
                current = Some((data, number, device));
            }
            match &mut current {
                Some((_, _, device)) => Ok::<_, Failure>(device.add(run, event)?),
                None => Ok(()),
            }
        })?;
        if let Some((data, number, device)) = current {
            done(&data, number, &device)?;
        }
        others
            .filter(|_| silent)
            .try_for_each(|(data, number)| done(data, number, &budgets.device(data, number)))
    }
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
    fn add(&mut self, run: String, event: Event) -> Result<(), PrivacyError> {
        self.releases += 1;
        self.claimed += event.claimed_epsilon(self.delta);
        self.runs.insert(run);
        count(&mut self.mechanisms, event.mechanism()?);
        count(&mut self.without_channel, without_channel(event).mechanism()?);
        Ok(())
    }

    fn row(&self, data: &str, device: u32, known: &mut Known) -> Result<Row, AccountError> {
        let mut costs = |counts: &Counts| -> Result<_, AccountError> {
            let key = format!("{counts:?} {}", self.delta);
            if let Some(&costs) = known.get(&key) {
                return Ok(costs);
            }
            let costs = costs(counts, self.delta)?;
            if known.len() == MOST_KNOWN {
                known.clear();
            }
            known.insert(key, costs);
            Ok(costs)
        };
        let [gdp, rdp, pld] = costs(&self.mechanisms)?;
        let best =
            |costs: [Option<f64>; 3]| costs.into_iter().flatten().fold(f64::INFINITY, f64::min);
        Ok(Row {
            data: data.into(),
            device,
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
