//! A headless browser.

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing takes this long on a machine that is not overloaded; a test that waits so long has failed.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The program that drives the browser.
struct Driver {
    child: Child,
    url: String,
}

impl Driver {
    fn start() -> Self {
        let mut child = Command::new("chromedriver")
            .args(["--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver: `cargo xtask test browser` installs it");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        thread::spawn(move || lines.for_each(drop));
        Self { child, url: format!("http://127.0.0.1:{}", port.expect("chromedriver names its port")) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It closes its browsers, also that of a test that failed; killed, it would leave them running.
        let host = self.url.trim_start_matches("http://");
        if let Ok(mut socket) = TcpStream::connect(host) {
            let _ = write!(socket, "GET /shutdown HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let _ = socket.read(&mut [0; 256]);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct BrowserPage(Client);

/// Runs `test` with a new browser at `url`.
pub(crate) fn browse(url: &str, test: impl AsyncFnOnce(BrowserPage)) {
    let driver = Driver::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = json!({"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"]});
        let capabilities = json!({"goog:chromeOptions": options}).as_object().cloned().unwrap();
        let client = ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(&driver.url).await;
        let client = client.expect("a session with the browser");
        let page = BrowserPage(client.clone());
        page.open(url).await;
        test(page).await;
        client.close().await.unwrap();
    });
}

impl BrowserPage {
    pub(crate) async fn open(&self, url: &str) {
        self.0.goto(url).await.unwrap();
    }

    /// Returns the result of a script.
    pub(crate) async fn script(&self, script: &str) -> Value {
        self.0.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The text of the first element that `selector` finds, as it is seen: a style may have made it capitals.
    pub(crate) async fn text(&self, selector: &str) -> String {
        self.0.find(Locator::Css(selector)).await.unwrap().text().await.unwrap()
    }

    /// Waits until what a script returns is as it should be.
    pub(crate) async fn until(&self, script: &str, is_right: impl Fn(&Value) -> bool) {
        let started = Instant::now();
        loop {
            let value = self.script(script).await;
            if is_right(&value) {
                return;
            }
            assert!(started.elapsed() < LONGEST_WAIT, "{script}: still {value}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Waits until the first element that `selector` finds has this text.
    pub(crate) async fn until_text(&self, selector: &str, text: &str) {
        let script = format!("return document.querySelector('{selector}').textContent");
        self.until(&script, |now| now == text).await;
    }

    /// Waits until the map shows so many `agents` or `links`, or this `round`.
    pub(crate) async fn until_map(&self, what: &str, number: u64) {
        let script = format!("return document.querySelector('#map').dataset.{what}");
        let number = number.to_string();
        self.until(&script, |now| *now == number).await;
    }

    /// Waits until the map has more than so many `links`, or was drawn more often.
    pub(crate) async fn until_map_above(&self, what: &str, number: u64) {
        let script = format!("return Number(document.querySelector('#map').dataset.{what})");
        self.until(&script, |now| now.as_u64() > Some(number)).await;
    }

    /// Makes the window as narrow as a phone.
    pub(crate) async fn narrow(&self) {
        self.0.set_window_size(400, 900).await.unwrap();
    }

    /// Keeps a picture of the whole page, where PICTURES names a folder for it.
    pub(crate) async fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("PICTURES") {
            let bytes = self.0.screenshot().await.unwrap();
            std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
        }
    }
}
