//! Keys and the values they take.

use lapa::config::Override;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::SweepError;

/// Keys that flags of their own set.
const RESERVED: [(&str, &str); 2] = [("run.seed", "--seeds"), ("run.threads", "--threads")];

/// Keys with their values, in the order given. The last key varies fastest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Grid {
    keys: Vec<Key>,
}

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    #[serde(rename = "key")]
    name: String,
    #[serde(rename = "values")]
    settings: Vec<Setting>,
}

/// A key set to one of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    text: String,
    value: Value,
    change: Override,
}

impl Grid {
    /// Reads flags of the form `section.key=a,b,c`. Values are TOML, as in `-c`; commas within
    /// brackets and quotes belong to them.
    pub fn parse<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, SweepError> {
        let mut keys: Vec<Key> = Vec::new();
        for flag in flags {
            let key = Key::parse(flag)?;
            if keys.iter().any(|other| other.name == key.name) {
                let name = key.name;
                let mistake =
                    format!("`{name}` is already in the grid; list all its values in one flag");
                return Err(SweepError::Flag { flag: flag.into(), mistake });
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(SweepError::NoGrid) } else { Ok(Self { keys }) }
    }

    /// The keys.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.keys.iter().fold(1, |len, key| len.saturating_mul(key.settings.len()))
    }

    /// Never: a grid has a key, and a key has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The points: a setting for each key.
    pub fn points(&self) -> impl Iterator<Item = Vec<&Setting>> {
        (0..self.len()).map(|mut at| {
            let mut point = Vec::new();
            for key in self.keys.iter().rev() {
                point.push(&key.settings[at % key.settings.len()]);
                at /= key.settings.len();
            }
            point.reverse();
            point
        })
    }
}

impl Key {
    fn parse(flag: &str) -> Result<Self, SweepError> {
        // Without `=` there is no value to split off; the error is that of any such flag.
        let (name, values) = flag.split_once('=').unwrap_or((flag, ""));
        let refuse = |mistake: String| Err(SweepError::Flag { flag: flag.into(), mistake });
        let mut settings: Vec<Setting> = Vec::new();
        for text in split(values) {
            if text.is_empty() && flag.contains('=') {
                return refuse("a value is empty; expected KEY=A,B,C".into());
            }
            let one = if flag.contains('=') { format!("{name}={text}") } else { flag.into() };
            let setting = Setting::new(text, Override::parse_flag("--grid", &one)?);
            if settings.iter().any(|other| other.same(&setting)) {
                return refuse(format!("the value {text} is given twice"));
            }
            settings.push(setting);
        }
        let name =
            settings.first().map(|setting| setting.change.path().to_owned()).unwrap_or_default();
        match RESERVED.iter().find(|(key, _)| *key == name) {
            Some((_, use_flag)) => refuse(format!("`{name}` cannot be in a grid; use {use_flag}")),
            None => Ok(Self { name, settings }),
        }
    }

    /// `section.key`
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key set to each of its values.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The values as numbers; `None` if any is not a number.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.settings.iter().map(|setting| setting.value.as_f64()).collect()
    }
}

impl Setting {
    fn new(text: &str, change: Override) -> Self {
        let value = change.value();
        // Without the quotes that TOML wants.
        let text = value.as_str().unwrap_or(text).to_owned();
        Self { text, value, change }
    }

    /// True if two values are the same, be it 1 or 1.0.
    fn same(&self, other: &Self) -> bool {
        match (self.value.as_f64(), other.value.as_f64()) {
            (Some(a), Some(b)) => a == b,
            _ => self.value == other.value,
        }
    }

    /// The value for people.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value as JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The change that it makes.
    pub fn change(&self) -> &Override {
        &self.change
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// The parts between commas that are in no bracket and no quotes, without blanks around them.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0u32, None);
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some('"'), '\\') => escaped = !escaped,
            (Some(open), _) => {
                if c == open && !escaped {
                    quote = None;
                }
                escaped = false;
            }
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A value that holds commas only within brackets and quotes.
    fn value() -> impl Strategy<Value = String> {
        let plain = "[a-z0-9.+_:/-]{1,8}";
        let literal = "'[^'\n]{0,8}'";
        let basic = prop::collection::vec(
            prop_oneof!["[^\"\\\\\n]", Just(r#"\""#.to_owned()), Just(r"\\".to_owned())],
            0..8,
        )
        .prop_map(|characters| format!("\"{}\"", characters.concat()));
        prop_oneof![plain, literal, basic].prop_recursive(3, 12, 4, |inner| {
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", ")))
        })
    }

    proptest! {
        #[test]
        fn splitting_undoes_joining(values in prop::collection::vec(value(), 1..6)) {
            for comma in [",", " , "] {
                let joined = values.join(comma);
                prop_assert_eq!(split(&joined), values.clone());
            }
        }
    }

    fn grid(flags: &[&str]) -> Result<Grid, SweepError> {
        Grid::parse(flags.iter().copied())
    }

    #[test]
    fn values_are_toml_and_points_are_all_combinations() {
        let flags = [
            "partition.mix.iid_samples=[100,300],[200,600]",
            "privacy.allocator = lapa, 'uniform'",
            "learn.learning_rate=0.1,1e-2,5",
        ];
        let grid = grid(&flags).unwrap();
        let names: Vec<&str> = grid.keys().iter().map(Key::name).collect();
        assert_eq!(
            names,
            ["partition.mix.iid_samples", "privacy.allocator", "learn.learning_rate"]
        );
        assert_eq!(grid.len(), 12);
        let points: Vec<String> = grid
            .points()
            .map(|point| point.iter().map(|s| s.text()).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(points.len(), 12);
        assert_eq!(points[0], "[100,300] lapa 0.1");
        assert_eq!(points[1], "[100,300] lapa 1e-2");
        assert_eq!(points[3], "[100,300] uniform 0.1");
        assert_eq!(points[11], "[200,600] uniform 5");
        let [lists, words, numbers] = grid.keys() else { panic!("three keys") };
        assert_eq!(lists.settings()[1].value(), &serde_json::json!([200, 600]));
        assert_eq!(words.settings()[1].value(), "uniform");
        assert_eq!(numbers.numbers(), Some(vec![0.1, 0.01, 5.0]));
        assert_eq!((lists.numbers(), words.numbers()), (None, None));
    }

    #[test]
    fn mistakes_name_the_flag_and_the_value() {
        for (flags, expected) in [
            (&[][..], "a sweep needs a grid"),
            (&["run.rounds="], "--grid run.rounds=: a value is empty"),
            (&["run.rounds=1,,2"], "--grid run.rounds=1,,2: a value is empty"),
            (&["run.rounds"], "--grid run.rounds: no `=` in it"),
            (
                &["run.rounds=1,2", "run.rounds=3"],
                "--grid run.rounds=3: `run.rounds` is already in",
            ),
            (&["learn.momentum=1,0,1.0"], "learn.momentum=1,0,1.0: the value 1.0 is given twice"),
            (&["data.name=a,'a'"], "the value 'a' is given twice"),
            (&["run.seed=1,2"], "`run.seed` cannot be in a grid; use --seeds"),
            (&["run.threads=1,2"], "`run.threads` cannot be in a grid; use --threads"),
            (&["partition.mix.iid_samples=[1,2],[3"], "`[3` is not a TOML value"),
        ] {
            let error = grid(flags).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
