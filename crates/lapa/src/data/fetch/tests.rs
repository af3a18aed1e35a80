use std::sync::Mutex;

use sha2::{Digest, Sha256};

use super::super::source::Source;
use super::super::{Format, idx};
use super::*;
use crate::files;
use crate::shape::Shape;

/// A data set of a few bytes, its contents, and a folder that holds it.
struct World {
    place: tempfile::TempDir,
    contents: [Vec<u8>; 4],
    files: Vec<KnownFile>,
}

impl World {
    fn new() -> Self {
        let contents = [
            vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40],
            vec![0, 0, 8, 1, 0, 0, 0, 2, 0, 1],
            vec![0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 50, 60],
            vec![0, 0, 8, 1, 0, 0, 0, 1, 1],
        ];
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("good")).unwrap();
        let file = |i: usize| {
            let (name, bytes) = (idx::FILES[i], &contents[i]);
            fs::write(place.path().join("good").join(name), bytes).unwrap();
            let sha256 = files::hex(Sha256::digest(bytes));
            KnownFile { name, bytes: bytes.len() as u64, sha256 }
        };
        let files = (0..4).map(file).collect();
        Self { place, contents, files }
    }

    fn folder(&self, name: &str) -> Source {
        Source::Folder(self.place.path().join(name))
    }

    fn set(&self, sources: Vec<Source>) -> Known {
        let files = self.files.clone();
        let format = Format::Idx;
        Known { name: "tiny", description: "", train: 2, test: 1, format, files, sources }
    }

    fn cache(&self) -> PathBuf {
        self.place.path().join("cache/tiny")
    }

    /// Files of the cache folder, apart from the lock.
    fn cached(&self) -> Vec<String> {
        let entries = self.cache().read_dir().unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }

    fn ensure(&self, set: &Known) -> (Result<Found, DataError>, Vec<FetchEvent>) {
        let mut events = Vec::new();
        let found = ensure(set, &self.cache(), &mut |event| events.push(event));
        (found, events)
    }

    fn shorten(&self, text: impl ToString) -> String {
        text.to_string().replace(self.place.path().to_str().unwrap(), "DIR")
    }
}

#[test]
fn the_second_load_is_from_the_cache() {
    let world = World::new();
    let set = world.set(vec![world.folder("absent"), world.folder("good")]);
    let (found, events) = world.ensure(&set);
    let found = found.unwrap();
    assert_eq!(found.parts.train.split.shape, Shape::new(1, 1, 2));
    assert_eq!(found.parts.train.split.values.bytes().unwrap(), [10, 20, 30, 40]);
    assert_eq!(world.shorten(found.source), "DIR/good");

    let words = |source: &str| format!("{}/{source}", world.place.path().display());
    assert_eq!(events[0], FetchEvent::Trying { source: words("absent") });
    let reason = "no such folder".into();
    assert_eq!(events[1], FetchEvent::Rejected { source: words("absent"), reason });
    assert_eq!(events[2], FetchEvent::Trying { source: words("good") });
    let file = idx::FILES[0].into();
    assert_eq!(events[3], FetchEvent::Progress { file, bytes: 20, total: 20 });
    let done = FetchEvent::Done { source: words("good"), folder: world.cache() };
    assert_eq!(events.last(), Some(&done));
    let mut names = idx::FILES.to_vec();
    names.sort();
    assert_eq!(world.cached(), names);

    let (found, events) = world.ensure(&world.set(vec![]));
    assert_eq!(world.shorten(found.unwrap().source), "cache DIR/cache/tiny");
    assert_eq!(events, []);
    assert_eq!(state(&set, &world.cache()), CacheState::Verified);
}

#[test]
fn an_altered_or_truncated_file_is_refused_and_fetched_again() {
    let world = World::new();
    let set = world.set(vec![world.folder("good")]);
    assert_eq!(state(&set, &world.cache()), CacheState::Missing);
    world.ensure(&set).0.unwrap();

    let labels = world.cache().join(idx::FILES[1]);
    let good = &world.contents[1];
    for (bytes, reason) in [
        ([&good[..9], &[0]].concat(), "train-labels-idx1-ubyte: SHA-256 is "),
        (good[..9].to_vec(), "train-labels-idx1-ubyte: 9 bytes, expected 10 bytes"),
    ] {
        fs::write(&labels, bytes).unwrap();
        let CacheState::Altered(altered) = state(&set, &world.cache()) else { panic!() };
        let expected = format!("{}: {reason}", labels.display());
        assert!(altered.starts_with(&expected), "{altered}");

        let (found, events) = world.ensure(&set);
        assert_eq!(found.unwrap().parts.train.split.labels, [0, 1]);
        let source = format!("cache {}", world.cache().display());
        // A process that another test is starting may hold a copy of the lock for a moment.
        let waiting = |event: &&FetchEvent| !matches!(event, FetchEvent::Waiting { .. });
        let first = events.iter().find(waiting);
        assert_eq!(first, Some(&FetchEvent::Rejected { source, reason: altered }));
        // Only the damaged file is fetched again.
        let file = |event: &FetchEvent| matches!(event, FetchEvent::Progress { .. });
        assert_eq!(events.iter().filter(|event| file(event)).count(), 1);
        assert_eq!(fs::read(&labels).unwrap(), *good);
    }
}

#[test]
fn when_nothing_works_every_source_is_listed() {
    let world = World::new();
    let [altered, short, long] = ["altered", "short", "long"].map(|name| {
        let folder = world.place.path().join(name);
        fs::create_dir(&folder).unwrap();
        for (file, bytes) in idx::FILES.iter().zip(&world.contents) {
            fs::write(folder.join(file), bytes).unwrap();
        }
        folder.join(idx::FILES[2])
    });
    let good = &world.contents[2];
    fs::write(altered, [&good[..17], &[61]].concat()).unwrap();
    fs::write(short, &good[..17]).unwrap();
    fs::write(long, [&good[..], &[0]].concat()).unwrap();
    let names = ["absent", "altered", "short", "long", "cache"];
    let (found, events) = world.ensure(&world.set(names.map(|name| world.folder(name)).into()));

    let error = found.err().unwrap();
    let DataError::Unavailable { ref tried, .. } = error else { panic!("{error}") };
    assert_eq!(tried.len(), 1 + names.len());
    let text = world.shorten(&error);
    for line in [
        "data set `tiny` is not available; tried",
        "  - cache DIR/cache/tiny: no train-images-idx3-ubyte; no train-labels-idx1-ubyte; \
         no t10k-images-idx3-ubyte; no t10k-labels-idx1-ubyte",
        "  - DIR/absent: no such folder",
        "  - DIR/short: t10k-images-idx3-ubyte: 17 bytes, expected 18 bytes",
        "  - DIR/long: t10k-images-idx3-ubyte: more, expected 18 bytes",
        "  - DIR/cache: no train-images-idx3-ubyte or train-images-idx3-ubyte.gz",
        "put its files into DIR/cache/tiny, or use idx:PATH",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
    }
    let line = text.lines().find(|line| line.contains("DIR/altered")).unwrap();
    assert!(line.ends_with(&format!(", expected {}", world.files[2].sha256)), "{line}");
    let rejected = |event: &&FetchEvent| matches!(event, FetchEvent::Rejected { .. });
    assert_eq!(events.iter().filter(rejected).count(), names.len());
    assert!(world.cached().is_empty());
}

#[test]
fn many_at_once_fetch_once() {
    let world = World::new();
    let set = world.set(vec![world.folder("good")]);
    let tries = Mutex::new(0);
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                let found = ensure(&set, &world.cache(), &mut |event| {
                    if matches!(event, FetchEvent::Trying { .. }) {
                        *tries.lock().unwrap() += 1;
                    }
                });
                assert_eq!(found.unwrap().parts.test.split.values.bytes().unwrap(), [50, 60]);
            });
        }
    });
    assert_eq!(*tries.lock().unwrap(), 1);
}

#[test]
fn who_comes_second_waits_and_is_told() {
    let world = World::new();
    let set = world.set(vec![world.folder("good")]);
    fs::create_dir_all(world.cache()).unwrap();
    let path = world.cache().join(".lock");
    let mut held = Some(lock(&path, &mut |_| panic!("nobody holds it yet")).unwrap());
    let mut events = Vec::new();
    let found = ensure(&set, &world.cache(), &mut |event| {
        // The holder lets go only once the other has said that it waits.
        if matches!(event, FetchEvent::Waiting { .. }) {
            held.take();
        }
        events.push(event);
    });
    found.unwrap();
    assert_eq!(events[0], FetchEvent::Waiting { lock: path });
}

#[test]
fn leftovers_of_a_killed_process_do_not_matter() {
    let world = World::new();
    fs::create_dir_all(world.cache()).unwrap();
    fs::write(world.cache().join(".lock"), "").unwrap();
    fs::write(world.cache().join(".lapa-1-1.tmp"), [9; 100]).unwrap();
    world.ensure(&world.set(vec![world.folder("good")])).0.unwrap();
    assert_eq!(world.cached().len(), 4);
}

#[test]
#[cfg(unix)]
fn pipes_in_the_cache_do_not_hang() {
    let world = World::new();
    let mkfifo = |name: &str| {
        let path = world.cache().join(name);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    fs::create_dir_all(world.cache()).unwrap();
    mkfifo(idx::FILES[1]);
    // Like any other file that is not what it should be, it is fetched anew.
    world.ensure(&world.set(vec![world.folder("good")])).0.unwrap();
    assert_eq!(fs::read(world.cache().join(idx::FILES[1])).unwrap(), world.contents[1]);
    fs::remove_file(world.cache().join(idx::FILES[1])).unwrap();
    fs::remove_file(world.cache().join(".lock")).unwrap();
    mkfifo(".lock");
    let refused = world.ensure(&world.set(vec![world.folder("good")])).0.err().unwrap();
    let source = std::error::Error::source(&refused).unwrap().to_string();
    assert!(refused.to_string().contains(".lock") && source.contains("regular"), "{refused}");
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let world = World::new();
    fs::write(world.place.path().join("cache"), "a file, not a folder").unwrap();
    let error = world.ensure(&world.set(vec![world.folder("good")])).0.err().unwrap();
    assert!(world.shorten(error).starts_with("DIR/cache/tiny: cannot create: "));
}
