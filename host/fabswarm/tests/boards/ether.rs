//! A radio for boards behind pseudo-terminals: what one sends, all others hear, whether its cable is plugged in or not.

use fabswarm_shared::packet::is_frame;
use fabswarm_shared::wire::stream::{Deframer, encode, encoded_max};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// The longest packet of a board, encoded.
const LONGEST: usize = 4096;

/// The channel in which boards hear each other.
#[derive(Clone, Default)]
pub(crate) struct Ether(Arc<Mutex<Vec<Sender<Vec<u8>>>>>);

/// The radio of one board. Its firmware has one line for everything: frames are taken out of that.
pub(crate) struct Radio {
    ether: Ether,
    number: usize,
    heard: Receiver<Vec<u8>>,
    deframer: Box<Deframer<LONGEST>>,
}

impl Ether {
    pub(crate) fn radio(&self) -> Radio {
        let (sender, heard) = channel();
        let mut radios = self.0.lock().unwrap();
        radios.push(sender);
        Radio { ether: self.clone(), number: radios.len() - 1, heard, deframer: Box::default() }
    }
}

impl Radio {
    /// Sends the frames in what a board says, and returns the rest, which is for its cable.
    pub(crate) fn send(&mut self, mut said: &[u8]) -> Vec<u8> {
        let mut by_cable = Vec::new();
        while let Some(packet) = self.deframer.next_frame(&mut said) {
            let Ok(packet) = packet else { continue };
            let mut line = vec![0; encoded_max(packet.len())];
            let length = encode(packet, &mut line).unwrap();
            line.truncate(length);
            if !is_frame(packet) {
                by_cable.extend_from_slice(&line);
                continue;
            }
            for (number, radio) in self.ether.0.lock().unwrap().iter().enumerate() {
                if number != self.number {
                    // A board that is gone hears nothing.
                    let _ = radio.send(line.clone());
                }
            }
        }
        by_cable
    }

    /// Bytes that the board hears now.
    pub(crate) fn heard(&self) -> Vec<u8> {
        self.heard.try_iter().flatten().collect()
    }
}
