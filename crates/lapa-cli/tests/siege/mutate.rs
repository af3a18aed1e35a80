//! Seeded choices, and changes of bytes and lines.

/// SplitMix64 (Steele, Lea & Flood 2014): a stream of choices that follows from a seed.
pub struct Dice(u64);

impl Dice {
    /// The choices of one case of an attack.
    pub fn new(attack: u64, case: u64) -> Self {
        Self(attack << 32 ^ case)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, words: &[&'a T]) -> &'a T {
        words[self.below(words.len())]
    }
}

/// Words that configurations and numbers go wrong with.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "-inf",
    "4294967295",
    "18446744073709551616",
    "''",
    "'\u{1b}]0;x\u{7}'",
    "[]",
    "{}",
    "true",
    "\"\\u0000\"",
    "1979-05-27",
    "[[[[[[[[]]]]]]]]",
    "=",
    "\n[privacy]\n",
    "'idx:/dev/zero'",
    "0x7fffffffffffffff",
    "[1, 2, 3]",
    "'none'",
    "\u{feff}",
];

/// A few changes of a text: of words, lines, and single bytes.
pub fn text(original: &str, dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<String> = original.lines().map(str::to_owned).collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(lines.len());
        let other = dice.below(lines.len());
        match dice.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => lines[at] = format!("k{} = {}", dice.below(99), dice.pick(&WORDS)),
            _ => {
                if let Some((key, _)) = lines[at].split_once('=') {
                    lines[at] = format!("{key}= {}", dice.pick(&WORDS));
                }
            }
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    let text = lines.join("\n").into_bytes();
    if dice.below(4) == 0 { bytes(&text, dice) } else { text }
}

/// One change of some bytes: a bit, a range that goes, doubles or is zeroed, or the end.
pub fn bytes(original: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let at = dice.below(bytes.len());
    let end = (at + 1 + dice.below(16)).min(bytes.len());
    match dice.below(6) {
        0 => drop(bytes.drain(at..end)),
        1 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        2 => bytes[at..end].fill(0),
        3 => bytes.truncate(at),
        _ => flip(&mut bytes, dice),
    }
    bytes
}

/// Flips one bit.
pub fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let at = dice.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << dice.below(8);
    }
}
