//! The web server.

use crate::access::Access;
use crate::assets;
use crate::hub::{Hub, Play};
use crate::prometheus;
use crate::socket;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_view::Audience;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

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
    let serve = move || {
        // It ends with the process, and only an error of the operating system ends it before.
        let _ = runtime.block_on(async { axum::serve(listener, router).await });
    };
    thread::Builder::new().name(name.to_owned()).spawn(serve)?;
    Ok(())
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
    headers: HeaderMap,
    uri: Uri,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(status) = site.access.check(&headers, &uri) {
        return refusal(status);
    }
    let upgrade = upgrade.max_message_size(socket::LONGEST_WISH).max_frame_size(socket::LONGEST_WISH);
    upgrade.on_upgrade(move |socket| socket::serve(socket, site.hub))
}

async fn newest_metrics(State(site): State<Site>, headers: HeaderMap, uri: Uri) -> Response {
    if let Err(status) = site.access.check(&headers, &uri) {
        return refusal(status);
    }
    let text = site.hub.newest_row().map(|row| prometheus::text(&row)).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
