//! The web server.

use crate::access::Access;
use crate::assets;
use crate::hub::{Hub, StartMode};
use crate::prometheus;
use crate::socket;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_view::Audience;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at once: a browser takes a few, and each may hold as much as a round is large.
const CONNECTIONS: usize = 64;
/// Time for the head of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const BACK_OFF: Duration = Duration::from_millis(20);

/// One of the connections at once.
type Permit = Extension<Arc<OwnedSemaphorePermit>>;

/// Why the server cannot be started.
fn start_error(error: impl std::fmt::Display) -> Diagnostic {
    let remedy = "try again; the machine may be out of threads or random numbers";
    Diagnostic::new(format!("cannot start the server: {error}"), remedy)
}

/// Serves the messages of one run, until the process ends.
#[derive(Debug)]
pub struct Server {
    audience: Arc<dyn Audience>,
    url: String,
}

/// State of every request handler.
#[derive(Clone, Debug)]
struct PageSite {
    hub: Arc<Hub>,
    access: Access,
}

impl Server {
    /// Starts to serve the page at `address`. If its port is taken, and the address is loopback, another one is used.
    ///
    /// # Errors
    /// When `address` is none, or cannot be listened on.
    pub fn start(address: &str, mode: StartMode) -> Result<Self, Diagnostic> {
        let (listener, access) = listen(address)?;
        let address = listener.local_addr().map_err(start_error)?;
        // Browsers do not send the part after `#`, so the token appears in no log and at no other site.
        let secret = access.token().map(|token| format!("#{token}")).unwrap_or_default();
        let url = format!("http://{address}/{secret}");
        let hub = Arc::new(Hub::new(mode));
        let site = PageSite { hub: Arc::clone(&hub), access };
        let router = Router::new()
            .route("/socket", get(open_socket))
            .route("/metrics", get(newest_metrics))
            .fallback(async |uri: Uri| assets::response(uri.path()))
            .layer(middleware::from_fn_with_state(site.clone(), check_host))
            .with_state(site);
        serve(listener, router).map_err(start_error)?;
        Ok(Self { audience: hub, url })
    }

    /// The address to open in a browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes the messages of the run.
    pub fn audience(&self) -> Arc<dyn Audience> {
        Arc::clone(&self.audience)
    }
}

/// Listens at `address`. If its port is taken, and the address is loopback, at another one.
fn listen(address: &str) -> Result<(TcpListener, Access), Diagnostic> {
    let wrong = |reason: String| {
        let what = format!("`{address}` is not an address to serve at: {reason}");
        Diagnostic::new(what, "write HOST:PORT, as in 127.0.0.1:8420, or 0.0.0.0:8420 for the whole network")
    };
    let mut found = address.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    let address = found.next().ok_or_else(|| wrong("it leads nowhere".to_owned()))?;
    let is_loopback = address.ip().is_loopback();
    let listener = TcpListener::bind(address).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse if is_loopback => TcpListener::bind((address.ip(), 0)),
        _ => Err(error),
    });
    let listener = listener.map_err(|error| {
        let what = format!("cannot serve at {address}: {error}");
        Diagnostic::new(what, "name another port, or port 0 for any that is free")
    })?;
    let access =
        if is_loopback { Access::on_this_machine() } else { Access::by_token().map_err(start_error)? };
    Ok((listener, access))
}

/// Serves on a new thread, until the process ends.
fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _guard = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    thread::Builder::new()
        .name("live page".to_owned())
        .spawn(move || runtime.block_on(accept(listener, router)))?;
    Ok(())
}

/// Serves each connection in a new task, until the process ends.
async fn accept(listener: tokio::net::TcpListener, router: Router) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let (accepted, free) = (listener.accept().await, Arc::clone(&connections).try_acquire_owned());
        let (Ok((stream, _)), Ok(permit)) = (accepted, free) else {
            // A connection beyond the limit is closed. Without a free file descriptor, wait for others to close.
            tokio::time::sleep(BACK_OFF).await;
            continue;
        };
        // The handler of a web socket, which outlives its request, holds the permit too.
        let permit = Arc::new(permit);
        let service = TowerToHyperService::new(router.clone().layer(Extension(Arc::clone(&permit))));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::spawn(async move {
            // A browser may leave at any time.
            let _ = connection.await;
            drop(permit);
        });
    }
}

async fn check_host(State(site): State<PageSite>, request: Request, next: Next) -> Response {
    match site.access.check_host(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => refusal(status),
    }
}

fn refusal(status: StatusCode) -> Response {
    let text = match status {
        StatusCode::UNAUTHORIZED => "the token is missing or wrong: open the address that fabswarm printed\n",
        _ => "not for you: open the address that fabswarm printed\n",
    };
    (status, text).into_response()
}

async fn open_socket(
    State(site): State<PageSite>,
    permit: Permit,
    headers: HeaderMap,
    uri: Uri,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(status) = site.access.check(&headers, &uri) {
        return refusal(status);
    }
    let upgrade = upgrade.max_message_size(socket::LONGEST_COMMAND).max_frame_size(socket::LONGEST_COMMAND);
    upgrade.on_upgrade(move |socket| async move {
        socket::serve(socket, site.hub).await;
        drop(permit);
    })
}

async fn newest_metrics(State(site): State<PageSite>, headers: HeaderMap, uri: Uri) -> Response {
    if let Err(status) = site.access.check(&headers, &uri) {
        return refusal(status);
    }
    let text = site.hub.newest_row().map(|row| prometheus::text(&row)).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    #[test]
    fn idle_connections_are_closed_for_a_browser() {
        let server = Server::start("127.0.0.1:0", StartMode::Follow).unwrap();
        let address = server.url().trim_start_matches("http://").trim_end_matches('/');
        let mut silent: Vec<TcpStream> =
            (0..3 * CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        // Connections beyond the limit are closed at once, all others after the timeout.
        for stream in &mut silent {
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let _ = stream.write_all(b"GET / HT");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(!answer.starts_with(b"HTTP/1.1 200"));
        }
        let mut browser = TcpStream::connect(address).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        browser.write_all(request.as_bytes()).unwrap();
        let mut page = String::new();
        browser.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    }
}
