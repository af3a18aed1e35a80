//! Reports in a real browser: headless Chromium opens them, and its console must stay silent.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::{TaskResult, process};

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
                     --disable-background-networking --disable-component-update --disable-sync \
                     --enable-logging=stderr --v=0 --dump-dom";

/// A browser that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Start of the last element of every page, apart from its name.
const END: &str = "id=\"end\"";

/// A small run with all that a page can show: links, channel noise, too little noise.
const CONFIG: &str = r#"
profile = "paper"
run = { rounds = 4, evaluate_every = 1 }
data.name = "synthetic"
partition.mix = { iid = 2, non_iid = 3, iid_samples = 60, non_iid_samples = 90 }
model.name = "logistic"
privacy = { initial_sigma = 0.05, channel_trust = 1 }
radio.noise_power_w = 1e-12
transmit = { uplink = "analog", access = "orthogonal" }
control = { noise = "switch", switch.rule = "sum" }
"#;

/// Makes the pages and opens them. Without a browser, and without a way to get one, it says so.
pub fn run() -> TaskResult {
    let Some(browser) = browser()? else {
        eprintln!("notice: no Chromium here ({}); reports were not opened", NAMES.join(", "));
        return Ok(ExitCode::SUCCESS);
    };
    let folder = process::root().join("target/browser");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| failed("empty", &folder, &error))?;
    }
    fs::create_dir_all(&folder).map_err(|error| failed("create", &folder, &error))?;
    let pages = make_reports(&folder)?;
    check_the_check(browser, &folder, &pages[0])?;

    let mut code = ExitCode::SUCCESS;
    for page in &pages {
        match complaint(&open(browser, page, &folder)?) {
            None => eprintln!("{}: opened, nothing on the console", page.display()),
            Some(complaint) => {
                eprintln!("{}: {complaint}", page.display());
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// The page of a small run, that of a study which needs no run, and that of an audit.
fn make_reports(folder: &Path) -> Result<[PathBuf; 3], String> {
    let lapa = process::build_lapa(false)?;
    let config = folder.join("small.toml");
    fs::write(&config, CONFIG).map_err(|error| failed("write", &config, &error))?;
    for arguments in [
        &["run", "small.toml", "--quiet", "--out", "run"][..],
        &["report", "run"],
        &["reproduce", "layout", "--quick", "--quiet", "--out", "study"],
        &["audit", "small.toml", "--attack", "ledger,inversion", "--quiet", "--out", "audit"],
    ] {
        process::output(Command::new(&lapa).current_dir(folder).args(arguments))?;
    }
    let pages = ["run/report.html", "study/report.html", "audit/audit.html"];
    Ok(pages.map(|page| folder.join(page)))
}

/// Opens pages that are broken on purpose: a check that lets them pass is worth nothing.
fn check_the_check(browser: &str, folder: &Path, report: &Path) -> Result<(), String> {
    let good = fs::read_to_string(report).map_err(|error| failed("read", report, &error))?;
    let broken = [
        ("throws.html", "<!DOCTYPE html><script>throw 1</script><p id=\"end\"></p>".to_owned()),
        ("fetches.html", good.replace("</main>", "<img src=\"x.png\" alt=\"\"></main>")),
        ("torn.html", good.split("<footer").next().unwrap_or_default().to_owned()),
    ];
    for (name, html) in broken {
        let page = folder.join(name);
        fs::write(&page, html).map_err(|error| failed("write", &page, &error))?;
        match complaint(&open(browser, &page, folder)?) {
            Some(complaint) => eprintln!("{name}, broken on purpose: found ({complaint})"),
            None => return Err(format!("{browser} finds nothing wrong with the broken {name}")),
        }
    }
    Ok(())
}

/// A page in the browser, and the browser's log.
struct Opened {
    dom: String,
    log: String,
}

fn open(browser: &str, page: &Path, folder: &Path) -> Result<Opened, String> {
    let name = page.file_stem().unwrap_or_default().to_string_lossy();
    let file = |ending: &str| folder.join(format!("{name}.{ending}"));
    let create = |path: &Path| File::create(path).map_err(|error| failed("create", path, &error));
    let (dom, log, profile) = (file("dom"), file("log"), file("profile"));
    let mut command = Command::new(browser);
    command.args(FLAGS.split(' ')).arg(format!("--user-data-dir={}", profile.display()));
    command.arg(format!("file://{}", page.display()));
    command.stdin(Stdio::null()).stdout(create(&dom)?).stderr(create(&log)?);
    let mut child = command.spawn().map_err(|error| format!("cannot start {browser}: {error}"))?;
    let start = process::now();
    let wait = |error| format!("cannot wait for {browser}: {error}");
    let status = loop {
        match child.try_wait().map_err(wait)? {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE => {
                child.kill().and_then(|()| child.wait()).map_err(wait)?;
                return Err(format!("{browser} hangs on {}", page.display()));
            }
            None => sleep(Duration::from_millis(50)),
        }
    };
    let read = |path: &Path| {
        let bytes = fs::read(path).map_err(|error| failed("read", path, &error))?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let opened = Opened { dom: read(&dom)?, log: read(&log)? };
    if !status.success() {
        return Err(format!("{browser} failed ({status}): {}", opened.log));
    }
    Ok(opened)
}

/// Mistake in a page, if there is one. The console's lines are marked `INFO:CONSOLE`, whatever
/// their weight; others are the browser's own affairs.
fn complaint(opened: &Opened) -> Option<String> {
    if let Some(line) = opened.log.lines().find(|line| line.contains("CONSOLE")) {
        return Some(format!("on the console: {line}"));
    }
    (!opened.dom.contains(END)).then(|| "the end of the page is missing".into())
}

/// A browser on the search path, installed first where that can be done without asking.
fn browser() -> Result<Option<&'static str>, String> {
    let name = installed();
    if name.is_none() && may_install() && apt_install(&["chromium"])? {
        return Ok(installed());
    }
    Ok(name)
}

/// Installs packages with apt-get; true on success.
pub fn apt_install(packages: &[&str]) -> Result<bool, String> {
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    for arguments in [&["update"][..], &install] {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
        if !process::run(&mut apt)?.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn installed() -> Option<&'static str> {
    let answers = |name: &&str| process::output(Command::new(name).arg("--version")).is_ok();
    NAMES.into_iter().find(answers)
}

/// True if we are root on a system with apt-get.
pub fn may_install() -> bool {
    let root = process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    root && process::output(Command::new("apt-get").arg("--version")).is_ok()
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_and_torn_pages_are_complained_of_and_nothing_else() {
        let opened = |dom: &str, log: &str| {
            complaint(&Opened { dom: dom.into(), log: log.into() }).unwrap_or_default()
        };
        let noise = "[1:2:ERROR:dbus/bus.cc:405] Failed to connect to the bus\n";
        assert_eq!(opened("<p id=\"end\"></p>", noise), "");
        let error = format!("{noise}[1:2:INFO:CONSOLE:1] \"Uncaught 1\"\n");
        assert!(opened("<p id=\"end\"></p>", &error).contains("Uncaught 1"));
        assert!(opened("<p></p>", "").contains("missing"));
    }
}
