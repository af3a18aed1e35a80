//! The calculator: any numbers have an answer or an error.

use super::*;

const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "1e-300",
    "1e300",
    "nan",
    "inf",
    "0.5",
    "1e-5",
    "1e-18",
    "0.999999999",
    "3e-11",
    "8",
    "150",
    "4294967295",
    "10000000",
    "1e-3",
    "0.1",
    "50",
    "",
];
const FLAGS: [&str; 5] = ["--sigma", "--target-epsilon", "--rounds", "--delta", "--sampling-rate"];
const ADJACENCIES: [&str; 4] = ["zero-out", "add-remove", "replace-one", "none"];

#[test]
fn any_numbers_have_an_answer_or_an_error() {
    let place = TempDir::new().unwrap();
    for case in cases(60, 1800) {
        let mut dice = Dice::new(6, case);
        let mut arguments = vec!["account"];
        for flag in FLAGS {
            if dice.below(4) > 0 {
                arguments.extend([flag, dice.pick(&NUMBERS)]);
            }
        }
        if dice.below(2) == 0 {
            arguments.extend(["--adjacency", dice.pick(&ADJACENCIES)]);
        }
        survives(place.path(), &arguments, &format!("account {case}"));
    }
}
