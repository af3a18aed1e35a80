//! Readings: plausible answers to what the paper leaves open, under each of which a claim is judged.

use std::sync::OnceLock;

use serde::Deserialize;

/// The file of readings, built in. It is written before the cells of a reading run.
const FILE: &str = "experiments/paper/readings.toml";
const TEXT: &str = include_str!("../../../../experiments/paper/readings.toml");

/// The reading that the configurations of the figures have as they are: the nearest to the text.
pub const MAIN: &str = "main";

/// A plausible answer to something that the paper leaves open.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Its name on the command line.
    pub name: String,
    /// The condition that it stands for, to follow "when".
    pub when: String,
    /// The sentence of the paper, or the usual practice, that makes it plausible.
    pub because: String,
    /// The claims that it bears on: a number stands for all its parts.
    pub claims: Vec<String>,
    /// Reading whose changes come first.
    #[serde(default)]
    pub on: Option<String>,
    /// Changes to the configurations of the figures: `section.key=value`. A parameter of a choice that
    /// a method does not make is passed over.
    #[serde(default)]
    pub set: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Readings {
    reading: Vec<Reading>,
}

/// All readings, the main one first.
pub fn all() -> &'static [Reading] {
    static READINGS: OnceLock<Vec<Reading>> = OnceLock::new();
    READINGS.get_or_init(|| match toml::from_str::<Readings>(TEXT) {
        Ok(readings) => readings.reading,
        Err(error) => panic!("{FILE}: {error}"),
    })
}

/// The main reading.
pub fn main() -> &'static Reading {
    &all()[0]
}

impl Reading {
    /// True for the reading that changes nothing.
    pub fn is_main(&self) -> bool {
        self.name == MAIN
    }

    /// The reading that its changes come on top of.
    pub fn base(&self) -> &'static Reading {
        let name = self.on.as_deref().unwrap_or(MAIN);
        all().iter().find(|reading| reading.name == name).unwrap_or(main())
    }

    /// All its changes: those of its base first.
    pub fn changes(&self) -> Vec<&str> {
        let own = self.set.iter().map(String::as_str);
        if self.is_main() {
            own.collect()
        } else {
            self.base().changes().into_iter().chain(own).collect()
        }
    }

    /// True if it bears on a claim.
    pub fn bears_on(&self, claim: &str) -> bool {
        self.is_main() || self.claims.iter().any(|name| is_part(claim, name))
    }
}

/// True if a claim is the one called `name`, or one of its parts: 3a of 3.
pub fn is_part(claim: &str, name: &str) -> bool {
    let rest = claim.strip_prefix(name);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reading_has_its_reason_and_the_main_one_changes_nothing() {
        assert!(main().is_main() && main().set.is_empty());
        let names: BTreeSet<&str> = all().iter().map(|reading| reading.name.as_str()).collect();
        assert_eq!(names.len(), all().len(), "a name comes twice");
        for reading in &all()[1..] {
            assert!(!reading.is_main() && !reading.set.is_empty(), "{}", reading.name);
            assert!(!reading.claims.is_empty(), "{}", reading.name);
            let base = reading.on.as_deref().unwrap_or(MAIN);
            let before = all().iter().take_while(|other| other.name != reading.name);
            assert_eq!(before.filter(|other| other.name == base).count(), 1, "{}", reading.name);
            assert!(!reading.when.is_empty() && !reading.because.is_empty(), "{}", reading.name);
        }
    }

    #[test]
    fn changes_of_the_base_come_first() {
        let named = |name: &str| all().iter().find(|reading| reading.name == name).unwrap();
        let (small, rules) = (named("small"), named("small-rules"));
        let analog = named("analog");
        assert_eq!(analog.base().name, "small-rules");
        let expected = [&small.set[..], &rules.set, &analog.set].concat();
        assert_eq!(analog.changes(), expected);
    }

    #[test]
    fn a_number_stands_for_its_parts() {
        for (claim, name, part) in
            [("3a", "3", true), ("3a", "3a", true), ("3a", "3b", false), ("13", "1", false)]
        {
            assert_eq!(is_part(claim, name), part, "{claim} {name}");
        }
    }
}
