use super::*;
use std::io::Write;

#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};

fn folder() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(&place.path().join("f")).unwrap();
    (place, folder)
}

#[test]
#[cfg(unix)]
fn no_way_of_opening_follows_a_link_or_changes_its_target() {
    let (place, folder) = folder();
    let target = place.path().join("target");
    fs::write(&target, "precious").unwrap();
    symlink(&target, folder.path().join("a")).unwrap();
    let written = folder.replace::<io::Error>("a", |file| file.write_all(b"lost"));
    let errors = [
        folder.open_file("a").unwrap_err(),
        folder.change_file("a").unwrap_err(),
        folder.lock_file("a").unwrap_err(),
        folder.read("a").unwrap_err(),
        written.unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("is a symbolic link"), "{error}");
    }
    assert!(folder.new_file("a").is_err());
    symlink(place.path(), folder.path().join("sub")).unwrap();
    let error = folder.subfolder("sub").unwrap_err().to_string();
    assert!(error.contains("sub: it is a symbolic link"), "{error}");
    // Dangling, too: nothing is made where it points.
    symlink(place.path().join("new"), folder.path().join("b")).unwrap();
    assert!(folder.lock_file("b").is_err() && folder.new_file("b").is_err());
    assert_eq!(folder.link_among(&["x", "b"]), Some("b"));
    assert!(!place.path().join("new").exists());
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
#[cfg(unix)]
fn the_folder_stays_the_one_that_was_opened() {
    let (place, folder) = folder();
    let (elsewhere, moved) = (place.path().join("elsewhere"), place.path().join("moved"));
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(folder.path(), &moved).unwrap();
    symlink(&elsewhere, folder.path()).unwrap();
    folder.replace::<io::Error>("a", |file| file.write_all(b"here")).unwrap();
    folder.subfolder("sub").unwrap().new_file("b").unwrap();
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
    assert_eq!(fs::read(moved.join("a")).unwrap(), b"here");
    assert!(moved.join("sub/b").is_file());
}

#[test]
#[cfg(unix)]
fn pipes_are_refused_at_once() {
    let (_place, folder) = folder();
    let path = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    for error in [
        folder.read("pipe").unwrap_err(),
        folder.change_file("pipe").unwrap_err(),
        folder.lock_file("pipe").unwrap_err(),
        open_regular(&path).unwrap_err(),
        read_to_string(&path).unwrap_err(),
    ] {
        assert_eq!(error.to_string(), "it is not a regular file");
    }
}

#[test]
#[cfg(unix)]
fn what_is_made_is_as_open_as_its_folder_and_new_folders_are_private() {
    let (_place, folder) = folder();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.path()), 0o700);
    folder.replace::<io::Error>("a", |file| file.write_all(b"x")).unwrap();
    folder.subfolder("sub").unwrap();
    assert_eq!(mode(&folder.path().join("a")), 0o600);
    assert_eq!(mode(&folder.path().join("sub")), 0o700);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
    folder.replace::<io::Error>("b", |file| file.write_all(b"x")).unwrap();
    // Other bits depend on the tester's umask.
    assert_eq!(mode(&folder.path().join("b")) & 0o607, 0o600);
}

#[test]
fn locks_shut_others_out_and_a_removed_lock_file_lets_nobody_in() {
    let (_place, folder) = folder();
    let again = || Folder::open(folder.path()).unwrap();
    let first = folder.lock().unwrap();
    assert!(matches!(again().lock(), Err(TryLockError::WouldBlock)));
    assert!(matches!(again().lock_shared(), Err(TryLockError::WouldBlock)));
    if cfg!(unix) {
        fs::remove_file(folder.path().join(LOCK)).unwrap();
        assert!(matches!(again().lock(), Err(TryLockError::WouldBlock)));
    }
    drop(first);
    let (one, two) = (again().lock_shared().unwrap(), again().lock_shared().unwrap());
    assert!(matches!(again().lock(), Err(TryLockError::WouldBlock)));
    drop((one, two));
    fs::write(folder.path().join(LOCK), "kept").unwrap();
    drop(folder.lock().unwrap());
    assert_eq!(fs::read(folder.path().join(LOCK)).unwrap(), b"kept");
}

#[test]
fn temporary_files_are_new_and_those_of_killed_processes_go() {
    let (_place, folder) = folder();
    let own = format!(".lapa-{}-", std::process::id());
    for number in 0..1000 {
        fs::write(folder.path().join(format!("{own}{number}.tmp")), "mine").unwrap();
    }
    folder.replace::<io::Error>("a", |file| file.write_all(b"x")).unwrap();
    assert_eq!(fs::read(folder.path().join(format!("{own}7.tmp"))).unwrap(), b"mine");
    folder.remove_temporaries().unwrap();
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["a"]);
}

#[test]
fn a_file_that_promises_too_much_is_not_read() {
    let (_place, folder) = folder();
    folder.new_file("big").unwrap().set_len(MOST_BYTES + 1).unwrap();
    let error = folder.read("big").unwrap_err().to_string();
    assert!(error.contains("4294967297 bytes") && error.contains("4294967296"), "{error}");
}

#[test]
fn a_forked_child_does_not_hold_a_lock_that_was_dropped() {
    let (_place, folder) = folder();
    let lock = folder.lock().unwrap();
    // A child between fork and exec has copies like these.
    let copies = [&lock.folder, &lock.file].map(|file| file.as_ref().unwrap().try_clone().unwrap());
    drop(lock);
    drop(folder.lock().unwrap());
    drop(copies);
}
