//! Data files: wrong headers, lengths and labels, compressed or not, of every format.

use super::*;

#[test]
fn a_mutated_data_file_is_refused_or_used() {
    let place = place();
    let place = place.path();
    let whole: Vec<(PathBuf, Vec<u8>)> = files(&place.join("digits"))
        .into_iter()
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    for case in cases(30, 1500) {
        let mut dice = Dice::new(3, case);
        let (path, bytes) = &whole[dice.below(whole.len())];
        let mut mutated = mutate::bytes(bytes, &mut dice);
        if dice.below(2) == 0 {
            // The header is the part that decides.
            let mut header = mutated[..mutated.len().min(16)].to_vec();
            mutate::flip(&mut header, &mut dice);
            mutated[..header.len()].copy_from_slice(&header);
        }
        fs::write(path, mutated).unwrap();
        let arguments = run_arguments("run", &["run.rounds=1"]);
        survives(place, &arguments, &format!("data {case}, {}", path.display()));
        fs::write(path, bytes).unwrap();
        let _ = fs::remove_dir_all(place.join("run"));
    }
}

/// The formats that the program writes, and Parquet: one file of a data set is damaged.
#[test]
fn a_mutated_file_of_any_format_is_refused_or_used() {
    let place = place();
    let place = place.path();
    let vectors = include_str!("../../../lapa/tests/vectors/pictures.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let table = |name: &str| -> Vec<u8> {
        let digits = vectors["tables"][name].as_str().unwrap().as_bytes().chunks_exact(2);
        digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    let targets = ["npz:arrays.npz", "csv:tables", "images:pictures"];
    for target in targets {
        let output = survives(place, &["data", "convert", "idx:digits", target], target);
        assert_eq!(output.status.code(), Some(0), "{target}");
    }
    for name in ["pictures", "sensors"] {
        fs::write(place.join(format!("{name}.parquet")), table(name)).unwrap();
    }
    let names = [
        "npz:arrays.npz",
        "csv:tables",
        "images:pictures",
        "parquet:pictures.parquet",
        "parquet:sensors.parquet",
    ];
    for case in cases(60, 3000) {
        let mut dice = Dice::new(13, case);
        let name = dice.pick(&names);
        let path = place.join(name.split_once(':').unwrap().1);
        let all = if path.is_dir() { files(&path) } else { vec![path] };
        let path = &all[dice.below(all.len())];
        let bytes = fs::read(path).unwrap();
        fs::write(path, mutate::bytes(&bytes, &mut dice)).unwrap();
        let arguments = ["data", "describe", name, "--quiet"];
        survives(place, &arguments, &format!("format {case}, {}", path.display()));
        fs::write(path, bytes).unwrap();
    }
}
