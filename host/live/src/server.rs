//! The web server.

use crate::access::Access;
use crate::assets;
use crate::hub::{Hub, Play};
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
pub(crate) type Permit = Extension<Arc<OwnedSemaphorePermit>>;

/// Why the server cannot be started.
pub(crate) fn start_error(error: impl std::fmt::Display) -> Diagnostic {
    let remedy = "try again; the machine may be out of threads or random numbers";
    Diagnostic::new(format!("cannot start the server: {error}"), remedy)
}

/// Serves the page of one run, until the process ends.
#[derive(Debug)]
pub struct Server {
    hub: Arc<Hub>,
    url: String,
}

/// What every request needs.
#[derive(Clone, Debug)]
struct Site {
    hub: Arc<Hub>,
    access: Access,
}

impl Server {
    /// Starts to serve at `address`. If its port is taken, and the address is loopback, another one is used.
    ///
    /// # Errors
    /// When `address` is none, or cannot be listened on.
    pub fn start(address: &str, play: Play) -> Result<Self, Diagnostic> {
        let (listener, access) = listen(address)?;
        let address = listener.local_addr().map_err(start_error)?;
        // What is after `#` stays in the browser: no log and no other site gets to see it.
        let secret = access.token().map(|token| format!("#{token}")).unwrap_or_default();
        let url = format!("http://{address}/{secret}");
        let hub = Arc::new(Hub::new(play));
        let site = Site { hub: Arc::clone(&hub), access };
        let router = Router::new()
            .route("/socket", get(open_socket))
            .route("/metrics", get(newest_metrics))
            .fallback(asset)
            .layer(middleware::from_fn_with_state(site.clone(), check_host))
            .with_state(site);
        serve(listener, router, "live page").map_err(start_error)?;
        Ok(Self { hub, url })
    }

    /// Where a browser finds it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes messages for the page.
    #[must_use]
    pub fn audience(&self) -> Arc<dyn Audience> {
        Arc::clone(&self.hub) as Arc<dyn Audience>
    }
}

/// Listens at `address`. If its port is taken, and the address is loopback, at another one.
pub(crate) fn listen(address: &str) -> Result<(TcpListener, Access), Diagnostic> {
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

/// Serves on a thread of its own, until the process ends.
pub(crate) fn serve(listener: TcpListener, router: Router, name: &str) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _guard = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(accept(listener, router)))?;
    Ok(())
}

/// Serves every connection in a task of its own, until the process ends.
async fn accept(listener: tokio::net::TcpListener, router: Router) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let (accepted, free) = (listener.accept().await, Arc::clone(&connections).try_acquire_owned());
        let (Ok((stream, _)), Ok(permit)) = (accepted, free) else {
            // One connection too many is closed; without a file for it, others may leave meanwhile.
            tokio::time::sleep(BACK_OFF).await;
            continue;
        };
        // Whoever serves a web socket, which outlives its request, keeps it.
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

async fn check_host(State(site): State<Site>, request: Request, next: Next) -> Response {
    match site.access.check_host(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => refusal(status),
    }
}

pub(crate) fn refusal(status: StatusCode) -> Response {
    let text = match status {
        StatusCode::UNAUTHORIZED => "the token is missing or wrong: open the address that fabswarm printed\n",
        _ => "not for you: open the address that fabswarm printed\n",
    };
    (status, text).into_response()
}

async fn asset(uri: Uri) -> Response {
    assets::response(uri.path())
}

async fn open_socket(
    State(site): State<Site>,
    permit: Permit,
    headers: HeaderMap,
    uri: Uri,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(status) = site.access.check(&headers, &uri) {
        return refusal(status);
    }
    let upgrade = upgrade.max_message_size(socket::LONGEST_WISH).max_frame_size(socket::LONGEST_WISH);
    upgrade.on_upgrade(move |socket| async move {
        socket::serve(socket, site.hub).await;
        drop(permit);
    })
}

async fn newest_metrics(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
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
    fn connections_that_ask_for_nothing_give_way_to_a_browser() {
        let server = Server::start("127.0.0.1:0", Play::Follow).unwrap();
        let address = server.url().trim_start_matches("http://").trim_end_matches('/');
        let mut silent: Vec<TcpStream> =
            (0..3 * CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        // Those beyond the limit are closed at once, all others in time.
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
