//! Data files: wrong headers, lengths and labels, compressed or not.

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
