use std::io::Write;
use std::net::TcpListener;

use flate2::write::GzEncoder;

use super::*;

const CONTENT: &[u8] = b"not IDX, which is none of a source's business";

fn known(name: &'static str) -> KnownFile {
    let sha256 = files::hex(Sha256::digest(CONTENT));
    KnownFile { name, bytes: CONTENT.len() as u64, sha256 }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Answers one request on the loopback with these bytes; gives what is fetched and the request.
fn answer(response: Vec<u8>) -> (Result<Vec<Vec<u8>>, String>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let count = stream.read(&mut request).unwrap();
        stream.write_all(&response).unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    // Without the proxy that the environment may name.
    let agent = ureq::Agent::config_builder().proxy(None).build().into();
    let got = from_mirror(&agent, &url, &[&known("labels")], &mut |_| {});
    (got, server.join().unwrap())
}

fn http(status: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn a_mirror_delivers_gzip() {
    let (got, request) = answer(http("200 OK", &gzip(CONTENT)));
    assert_eq!(got.unwrap(), [CONTENT]);
    assert!(request.starts_with("GET /data/labels.gz "), "{request}");
}

#[test]
fn a_bad_answer_of_a_mirror_is_a_reason() {
    let reason = |response| answer(response).0.unwrap_err();
    let missing = reason(http("404 Not Found", b""));
    assert!(missing.starts_with("labels.gz: ") && missing.contains("404"), "{missing}");
    let page = reason(http("200 OK", b"<html>log in first</html>"));
    assert_eq!(page, "labels: 25 bytes, expected 45 bytes");
    let bomb = reason(http("200 OK", &gzip(&[0; 1 << 20])));
    assert_eq!(bomb, "labels: more, expected 45 bytes");
    let mut cut = http("200 OK", &gzip(CONTENT));
    cut.truncate(cut.len() - 20);
    assert!(reason(cut).starts_with("labels: "));
}

#[test]
fn an_unreachable_mirror_is_a_reason() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let agent = ureq::Agent::config_builder().proxy(None).build().into();
    let url = format!("http://127.0.0.1:{port}/");
    let reason = from_mirror(&agent, &url, &[&known("labels")], &mut |_| {}).unwrap_err();
    assert!(reason.starts_with("labels.gz: "), "{reason}");
}

#[test]
fn plain_http_is_refused() {
    let source = Source::Mirror("http://127.0.0.1:1/".into());
    let reason = source.fetch(&[&known("labels")], &mut |_| {}).unwrap_err();
    assert!(reason.contains("https"), "{reason}");
}

#[test]
fn a_package_is_read_in_one_pass() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("package.tgz");
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Default::default()));
    for name in ["package/labels", "package/data/labels", "package/data/images"] {
        let content = if name == "package/labels" { b"decoy" } else { CONTENT };
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content).unwrap();
    }
    std::fs::write(&path, archive.into_inner().unwrap().finish().unwrap()).unwrap();

    let [images, labels, other] = ["images", "labels", "other"].map(known);
    let read = |wanted: &[&KnownFile]| {
        from_tgz(File::open(&path).unwrap(), "package/data", wanted, &mut |_| {})
    };
    assert_eq!(read(&[&images, &labels]).unwrap(), [CONTENT, CONTENT]);
    assert_eq!(read(&[&images, &other]).unwrap_err(), "no package/data/other in the package");

    std::fs::write(&path, "no archive").unwrap();
    assert!(read(&[&images]).unwrap_err().starts_with("broken archive: "));
}
