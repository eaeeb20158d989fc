//! The page in a real browser. `cargo xtask test browser` installs it, builds the command with the page and runs these tests.

mod chromium;
#[path = "../../../fabswarm/tests/support/command.rs"]
mod support;

use chromium::{BrowserPage, browse};
use fabswarm_live::{Server, StartMode};
use fabswarm_view::message::{RunMessage, Topic};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;
use support::{Folder, Running};

/// A run that goes on until it is dropped, and its page.
struct LiveRun {
    url: String,
    _process: Running,
    _folder: Folder,
}

impl LiveRun {
    /// A run with these flags, on a free port.
    fn start(flags: &str) -> Self {
        Self::at("127.0.0.1:0", flags)
    }

    fn at(address: &str, flags: &str) -> Self {
        let folder = Folder::new();
        let endless = format!("run --live={address} --rounds 4000000000 --error-below 0 {flags}");
        let (process, url) = serve(&folder, &endless);
        Self { url, _process: process, _folder: folder }
    }
}

/// Starts a command, and waits until it says where its page is.
fn serve(folder: &Folder, line: &str) -> (Running, String) {
    let address = |process: &Running| {
        let said = process.said();
        said.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
    };
    let mut process = Running::start(folder.fabswarm(line));
    process.wait_for("the address", |process| address(process).is_some());
    let url = address(&process).unwrap();
    (process, url)
}

async fn round(page: &BrowserPage) -> u64 {
    let text = page.text("#round").await;
    text.replace(',', "").parse().unwrap_or(0)
}

async fn until_round_after(page: &BrowserPage, round: u64) {
    let script = "return Number(document.querySelector('#round').textContent.replaceAll(',', ''))";
    page.until(script, |now| now.as_u64() > Some(round)).await;
}

/// Serves messages that no run has sent.
fn publish(messages: impl IntoIterator<Item = (Topic, Value)>) -> Server {
    let server = Server::start("127.0.0.1:0", StartMode::Follow).unwrap();
    for (topic, json) in messages {
        let json = json.to_string();
        server.audience().publish(RunMessage { topic, round: 0, elapsed: Duration::ZERO, json });
    }
    server
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_run_on_boards_is_seen_while_it_goes_on() {
    let run = LiveRun::start("--boards native:3,in-process --agents 6");
    browse(&run.url, async |page| {
        page.until_text("#status", "running").await;
        page.until_map("agents", 6).await;
        let first = round(&page).await;
        until_round_after(&page, first + 10).await;
        let error = page.text("#error").await;
        assert!(error.parse::<f64>().is_ok(), "{error}");
        assert!(page.text("#description").await.contains("on boards (native:3,in-process)"));
        let drawn = "return [...document.querySelectorAll('.chart canvas')].map(c => c.width > 0)";
        assert_eq!(page.script(drawn).await, json!([true, true]));
        assert_eq!(page.script("return document.documentElement.scrollWidth <= innerWidth").await, true);
        page.picture("live").await;
        // Agent 0 runs on a board, which is compared with its shadow in every round.
        page.script("document.querySelector('#map').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))").await;
        let board = "return document.querySelector('[data-fact=\"board\"]')?.textContent";
        let is_equal = |text: &Value| {
            text.as_str().is_some_and(|text| text.starts_with("all ") && text.ends_with(" digests equal"))
        };
        page.until(board, is_equal).await;
        let answers = "return document.querySelector('[data-fact=\"answers\"]').textContent";
        assert!(page.script(answers).await.as_str().unwrap().ends_with(" ms"));
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn boards_that_keep_their_own_time_are_seen() {
    let run = LiveRun::start("--boards native --agents 4 --pace slots --radio carried");
    browse(&run.url, async |page| {
        page.until_map("agents", 4).await;
        let first = round(&page).await;
        until_round_after(&page, first + 3).await;
        page.until_map_above("links", 0).await;
        page.picture("flight").await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_run_on_emulated_boards_is_seen_while_it_goes_on() {
    let run = LiveRun::start("--boards qemu:2,in-process --agents 4");
    browse(&run.url, async |page| {
        page.until_text("#status", "running").await;
        page.until_map("agents", 4).await;
        assert!(page.text("#description").await.contains("on boards (qemu:2,in-process)"));
        let numbers = "return ['#round', '#error'].map(id => document.querySelector(id).textContent)";
        let before = page.script(numbers).await;
        page.until(numbers, |now| now[0] != before[0] && now[1] != before[1]).await;
        page.picture("emulated").await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_training_run_is_seen_while_it_goes_on() {
    let folder = Folder::new();
    let endless = "--data sample --agents 5 --algorithm ledger --iid-loss 0.3 --epochs 1000000 --out run";
    let (_run, url) = serve(&folder, &format!("train --live=127.0.0.1:0 --device cpu {endless}"));
    let numbers = "return ['#round', '#accuracy', '#loss', '#auc', '#round-time', '#memory', '#sent']
        .map(id => document.querySelector(id)?.textContent)";
    let has_all = |texts: &Value| {
        texts.as_array().unwrap().iter().all(|text| text.as_str().is_some_and(|text| text != "–"))
    };
    browse(&url, async |page| {
        page.until_map("agents", 5).await;
        page.until(numbers, has_all).await;
        assert!(page.text("#description").await.contains("30 % of the frames are lost"));
        let before = page.script(numbers).await;
        page.until(numbers, |now| (0..3).all(|at| now[at] != before[at])).await;
        let drawn = "return [...document.querySelectorAll('.chart canvas')].map(c => c.width > 0)";
        assert_eq!(page.script(drawn).await, json!([true, true, true]));
        let heights = "return [...document.querySelectorAll('#weights i')].filter(bar => parseFloat(bar.style.height) > 0).length";
        page.until(heights, |bars| bars.as_u64() > Some(2)).await;
        page.until_map_above("links", 0).await;
        page.picture("training").await;

        // Another process shows the same run from its log.
        let (_watched, url) = serve(&folder, "show run --address 127.0.0.1:0");
        page.open(&url).await;
        page.until(numbers, has_all).await;
        assert_eq!(page.text("#status").await, "running");
    });
}

/// A number that was not measured leaves a hole in its curve instead of a line across it.
#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn gaps_are_shown_as_gaps() {
    let about = json!({"type": "run", "description": "", "problem": "", "error_kind": "gradient_norm", "error_label": "", "agents": 1, "area_m": null});
    let row = |round: u32| {
        let error = if (30..=70).contains(&round) { Value::Null } else { json!(0.5) };
        (Topic::Metrics, json!({"type": "metrics", "round": round, "gradient_norm": error, "frames": {}}))
    };
    let server = publish([(Topic::Run, about)].into_iter().chain((0..=100).map(row)));
    browse(server.url(), async |page| {
        // Which columns of the plot hold a pixel of the first curve, from left to right, in tenths of its width.
        let inked = "
            const canvas = document.querySelector('#error-chart canvas'), context = canvas.getContext('2d');
            const ratio = canvas.width / canvas.clientWidth, left = canvas.dataset.left * ratio, width = canvas.dataset.right * ratio - left;
            const curve = getComputedStyle(canvas).getPropertyValue('--curve-a').trim();
            const wanted = [1, 3, 5].map(at => parseInt(curve.slice(at, at + 2), 16));
            return Array.from({length: 10}, (_, tenth) => {
                const at = context.getImageData(left + (tenth + 0.5) * width / 10, 0, 1, canvas.height).data;
                for (let i = 0; i < at.length; i += 4)
                    if (at[i + 3] > 0 && wanted.every((value, c) => Math.abs(at[i + c] - value) < 24)) return true;
                return false;
            })";
        page.until(inked, |columns| columns[0] == true).await;
        let columns = page.script(inked).await;
        assert_eq!(columns, json!([true, true, true, false, false, false, false, true, true, true]));
        page.picture("gaps").await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_click_shows_an_agent_and_a_link_without_arrivals_vanishes() {
    // From round 3 on, the radio of agent 2 is off: everything to it is lost.
    let run = LiveRun::start("--agents 5 --topology complete --radio-off 2@3+3999999990");
    browse(&run.url, async |page| {
        page.until_map("links", 12).await;
        // Agent 0 is at the top of the circle.
        page.script(
            "const map = document.querySelector('#map'), box = map.getBoundingClientRect();
             const side = Math.min(box.width, box.height), at = {clientX: box.left + box.width / 2, clientY: box.top + (box.height - side) / 2 + 23};
             map.dispatchEvent(new MouseEvent('click', {...at, bubbles: true}))",
        )
        .await;
        assert_eq!(page.text("#agent-title").await.to_lowercase(), "agent 0");
        let fact =
            |name: &str| format!("return document.querySelector('[data-fact=\"{name}\"]').textContent");
        let shown = page.script(&fact("round")).await;
        page.until(&fact("round"), |now| *now != shown).await;
        assert_eq!(page.script(&fact("hears now")).await, "3");
        let rows =
            "return [...document.querySelectorAll('#agent-links tbody tr')].map(row => row.textContent)";
        let rows = page.script(rows).await;
        assert!(
            rows.as_array().unwrap().iter().any(|row| row.as_str().unwrap().starts_with("to 2–100 %")),
            "{rows}"
        );
        // The keyboard does the same.
        page.script("document.querySelector('#map').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))").await;
        assert_eq!(page.text("#agent-title").await.to_lowercase(), "agent 1");
        // At the beginning all links were there.
        seek(&page, 0).await;
        page.until_map("round", 0).await;
        seek(&page, 2).await;
        page.until_map("links", 20).await;
        page.picture("agent").await;
    });
}

async fn seek(page: &BrowserPage, index: usize) {
    let script = format!(
        "const slider = document.querySelector('#slider'); slider.value = {index}; slider.dispatchEvent(new Event('input'))"
    );
    page.script(&script).await;
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn the_past_stays_until_the_newest_is_asked_for() {
    let run = LiveRun::start("");
    browse(&run.url, async |page| {
        page.until("return Number(document.querySelector('#slider').max)", |last| last.as_u64() > Some(20))
            .await;
        seek(&page, 7).await;
        page.until_text("#round", "7").await;
        let newest = "return Number(document.querySelector('#slider').max)";
        let before = page.script(newest).await.as_u64();
        page.until(newest, |now| now.as_u64() > before).await;
        assert_eq!(page.text("#round").await, "7");
        page.script("document.querySelector('#follow').click()").await;
        page.until("return document.querySelector('#round').textContent", |round| round != "7").await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn the_page_comes_back_with_the_server() {
    let run = LiveRun::start("");
    let url = run.url.clone();
    browse(&url, async |page| {
        page.until_text("#status", "running").await;
        drop(run);
        page.until_text("#status", "no connection").await;
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let again = LiveRun::at(address, "--agents 7");
        assert_eq!(again.url, url);
        page.until_text("#status", "running").await;
        page.until_map("agents", 7).await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn pages_of_other_origins_get_nothing() {
    let run = LiveRun::start("");
    let target = run.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let elsewhere = serve_once_and_again(format!(
        "<!doctype html><title>waiting</title><script>
         const fetched = fetch('http://{target}/metrics').then(r => r.text()).then(t => 'read ' + t.length, () => 'denied');
         const framed = new Promise(done => {{ const s = new WebSocket('ws://{target}/socket'); s.onmessage = () => done('read'); s.onerror = () => done('denied'); }});
         Promise.all([fetched, framed]).then(got => document.title = got.join(' '));
         </script>"
    ));
    browse(&elsewhere, async |page| {
        page.until("return document.title", |title| title == "denied denied").await;
        // The same requests from the page itself are served.
        page.open(&run.url).await;
        page.until(
            "return fetch('/metrics').then(r => r.text()).then(t => t.includes('fabswarm_round'))",
            |has| has == true,
        )
        .await;
    });
}

/// Serves `html` on a free port for as long as the test runs.
fn serve_once_and_again(html: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                html.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(html.as_bytes()));
        }
    });
    url
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn beyond_this_machine_there_is_no_data_without_the_token() {
    let run = LiveRun::at("0.0.0.0:0", "");
    let (bare, token) = run.url.split_once('#').expect("a token in the address");
    let bare = bare.replace("0.0.0.0", "127.0.0.1");
    browse(&bare, async |page| {
        page.until_text("#status", "no connection").await;
        let refused = "return fetch('/metrics').then(r => r.status)";
        assert_eq!(page.script(refused).await, 401);
        assert_eq!(page.text("#round").await, "–");
        page.open("about:blank").await;
        page.open(&format!("{bare}#{token}")).await;
        page.until_text("#status", "running").await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_hostile_name_or_line_stays_text() {
    let hostile = "<img src=x onerror=\"window.harmed = 1\"><script>window.harmed = 1</script>";
    let server = publish([
        (
            Topic::Run,
            json!({"type": "run", "description": hostile, "problem": hostile, "error_kind": hostile, "error_label": hostile, "agents": 1, "area_m": null}),
        ),
        (Topic::Log, json!({"type": "log", "level": 3, "name": hostile, "message": hostile, "round": 1})),
        (Topic::Metrics, json!({"type": hostile, "round": 1, hostile: hostile, "frames": {hostile: 1}})),
    ]);
    browse(server.url(), async |page| {
        page.until("return document.querySelectorAll('#log li').length", |count| count == 1).await;
        assert!(page.text("#log li").await.contains(hostile));
        assert_eq!(page.text("#description").await, hostile);
        assert_eq!(page.script("return document.querySelectorAll('img, body script').length").await, 0);
        assert_eq!(page.script("return window.harmed ?? null").await, Value::Null);
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_thousand_agents_fit_the_page() {
    let run = LiveRun::start("--agents 1000 --edge-probability 0.01");
    browse(&run.url, async |page| {
        page.until_map("agents", 1000).await;
        page.until_map_above("frames", 30).await;
        let links = page.script("return Number(document.querySelector('#map').dataset.links)").await;
        assert!((500..3000).contains(&links.as_u64().unwrap()), "{links}");
        // Thirty pictures a second leave 33 ms for each. What a browser without a screen takes beside other tests is up to its
        // machine, so it is printed and not asserted.
        page.until("return document.querySelector('#map').dataset.pictureMs", |taken| !taken.is_null()).await;
        let taken = page.script("return Number(document.querySelector('#map').dataset.pictureMs)").await;
        let shown = page
            .script(
                "const map = document.querySelector('#map'), before = map.dataset.frames, began = performance.now();
                 return new Promise(done => setTimeout(() =>
                     done(1000 * (map.dataset.frames - before) / (performance.now() - began)), 2000))",
            )
            .await;
        println!("1,000 agents: a picture takes {taken} ms, {shown} are shown per second");
        assert!(taken.as_f64() > Some(0.0), "{taken}");
        page.picture("thousand").await;
    });
}

#[test]
#[ignore = "needs a browser: cargo xtask test browser"]
fn a_run_is_played_back() {
    let folder = Folder::new();
    folder.succeeds("run --topology motion --out flight");
    let (_replay, url) = serve(&folder, "show flight --address 127.0.0.1:0");
    browse(&url, async |page| {
        page.until_text("#status", "converged").await;
        // It plays by itself, from the beginning.
        page.until("return Number(document.querySelector('#slider').value)", |index| {
            index.as_u64() > Some(3)
        })
        .await;
        page.script("document.querySelector('#play').click()").await;
        seek(&page, 40).await;
        page.until_text("#round", "40").await;
        page.picture("replay").await;
        page.narrow().await;
        assert_eq!(page.script("return document.documentElement.scrollWidth <= innerWidth").await, true);
        page.picture("phone").await;
    });
}
