//! The conversation with one browser.

use crate::hub::{Browser, Hub};
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use std::sync::Arc;
use std::time::Duration;

/// Thirty pictures a second.
const SHORTEST_PAUSE: Duration = Duration::from_millis(33);

/// A page sends nothing longer.
pub(crate) const LONGEST_COMMAND: usize = 1024;

/// Serves a browser until it leaves.
pub(crate) async fn serve(mut socket: WebSocket, hub: Arc<Hub>) {
    let mut browser = hub.join();
    loop {
        tokio::select! {
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) => browser.take_command(&text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            () = browser.changed() => {
                if send_updates(&mut socket, &mut browser).await.is_err() {
                    return;
                }
                tokio::time::sleep(SHORTEST_PAUSE).await;
            }
        }
    }
}

/// Sends the updates. A slow browser gets the newest view once it is ready again.
async fn send_updates(socket: &mut WebSocket, browser: &mut Browser) -> Result<(), axum::Error> {
    for text in browser.drain_updates() {
        socket.send(Message::Text(Utf8Bytes::from(&*text))).await?;
    }
    Ok(())
}
