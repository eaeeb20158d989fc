//! A run on a terminal: the same messages that `run.mcap` holds and the page shows, on one screen of text.
//!
//! [`FullScreen`] takes the terminal over, draws a [`Dashboard`] ten times a second in a thread of its own, and gives the terminal
//! back when it is closed or dropped. The run never waits for it.

mod dashboard;
mod draw;

pub use dashboard::Dashboard;

use fabswarm_sim::swarm::ViewRequest;
use fabswarm_view::Audience;
use fabswarm_view::message::Message;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long the screen waits for a key before it is drawn again.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// The terminal, while a run has it for itself.
#[derive(Debug)]
pub struct FullScreen {
    shown: Arc<ShownRun>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// What the run's thread writes and the screen's thread draws.
#[derive(Debug, Default)]
struct ShownRun {
    dashboard: Mutex<Dashboard>,
    is_closed: AtomicBool,
}

impl ShownRun {
    fn dashboard(&self) -> MutexGuard<'_, Dashboard> {
        // Every change is whole before anything can panic.
        self.dashboard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience for ShownRun {
    fn request(&self) -> Option<ViewRequest> {
        Some(ViewRequest::default())
    }

    fn publish(&self, message: Message) {
        self.dashboard().take(&message);
    }
}

impl FullScreen {
    /// Takes the terminal over. `q` and Ctrl-C set `interrupted`, as a signal does elsewhere; a second one ends the process.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(interrupted: Arc<AtomicBool>) -> io::Result<Self> {
        let mut terminal = ratatui::try_init()?;
        let shown = Arc::<ShownRun>::default();
        let drawn = Arc::clone(&shown);
        let draw = move || {
            let mut first_agent = 0;
            while !drawn.is_closed.load(Ordering::Relaxed) {
                {
                    let dashboard = drawn.dashboard();
                    first_agent = first_agent.min(dashboard.agents().saturating_sub(1));
                    let is_ending = interrupted.load(Ordering::Relaxed);
                    terminal.draw(|frame| draw::screen(frame, &dashboard, first_agent, is_ending))?;
                }
                if event::poll(DRAW_EVERY)?
                    && let Event::Key(key) = event::read()?
                    && key.kind == KeyEventKind::Press
                {
                    let is_ctrl_c =
                        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                    match key.code {
                        KeyCode::Char('q') | KeyCode::Esc => interrupt(&interrupted),
                        _ if is_ctrl_c => interrupt(&interrupted),
                        KeyCode::Down => first_agent += 1,
                        KeyCode::Up => first_agent = first_agent.saturating_sub(1),
                        KeyCode::PageDown => first_agent += 10,
                        KeyCode::PageUp => first_agent = first_agent.saturating_sub(10),
                        KeyCode::Home => first_agent = 0,
                        _ => {}
                    }
                }
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("terminal".to_owned()).spawn(draw);
        if thread.is_err() {
            ratatui::restore();
        }
        Ok(Self { shown, thread: Some(thread?) })
    }

    /// Takes messages for the screen.
    #[must_use]
    pub fn audience(&self) -> Arc<dyn Audience> {
        Arc::clone(&self.shown) as Arc<dyn Audience>
    }

    /// Gives the terminal back.
    ///
    /// # Errors
    /// When the screen could not be drawn: the terminal was closed, as a rule.
    pub fn close(mut self) -> io::Result<()> {
        self.leave()
    }

    fn leave(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.shown.is_closed.store(true, Ordering::Relaxed);
        // The thread draws what it was given, and nothing in that can make it panic.
        let drawn = thread.join().unwrap_or(Ok(()));
        ratatui::restore();
        drawn
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}

/// Asks the run to end; asked again, ends the process.
fn interrupt(interrupted: &AtomicBool) {
    if interrupted.swap(true, Ordering::Relaxed) {
        ratatui::restore();
        std::process::exit(130);
    }
}
