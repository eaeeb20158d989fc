//! DTR and RTS of a port, which boards use in different ways.

use crate::firmware::board_file::BoardFile;
use fabswarm_board_file::SerialPort as ControlLines;
use serialport::{SerialPort, TTYPort};

/// Something with both lines.
pub(super) trait LinePins {
    fn set_dtr(&mut self, is_set: bool);
    fn set_rts(&mut self, is_set: bool);
}

impl LinePins for TTYPort {
    // A pseudo-terminal is "not a typewriter" and has neither.
    fn set_dtr(&mut self, is_set: bool) {
        let _ = self.write_data_terminal_ready(is_set);
    }

    fn set_rts(&mut self, is_set: bool) {
        let _ = self.write_request_to_send(is_set);
    }
}

/// The lines that the `board.toml` of `board` asks for. By default those that Linux sets when it opens a port: a board on USB sends
/// only while DTR is set, and no board is reset by both.
pub(crate) fn lines_of(board: &str) -> ControlLines {
    BoardFile::read(board).map(|file| file.serial).unwrap_or_default()
}

/// Sets the lines of a port that was opened. RTS is never set without DTR, not even for a moment: that resets an ESP32.
pub(super) fn apply(lines: ControlLines, pins: &mut impl LinePins) {
    if lines.rts {
        pins.set_dtr(lines.dtr);
        pins.set_rts(true);
    } else {
        pins.set_rts(false);
        pins.set_dtr(lines.dtr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The USB port of an ESP32 (technical reference manual, table of the serial port's lines), and that of a board which sends
    /// only to who listens.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct FakeBoard {
        dtr: bool,
        rts: bool,
        resets: u32,
        is_for_boot_rom: bool,
    }

    impl FakeBoard {
        /// As Linux opens it: both lines at once.
        fn opened() -> Self {
            Self { dtr: true, rts: true, ..Self::default() }
        }

        fn react(&mut self) {
            match (self.dtr, self.rts) {
                (false, true) => self.resets += 1,
                (true, false) => self.is_for_boot_rom = true,
                (false, false) => self.is_for_boot_rom = false,
                (true, true) => {}
            }
        }
    }

    impl LinePins for FakeBoard {
        fn set_dtr(&mut self, is_set: bool) {
            self.dtr = is_set;
            self.react();
        }

        fn set_rts(&mut self, is_set: bool) {
            self.rts = is_set;
            self.react();
        }
    }

    #[test]
    fn opening_a_port_resets_no_board() {
        for board in crate::board_names() {
            let lines = lines_of(&board);
            let mut port = FakeBoard::opened();
            // Opened a second time after a cable was unplugged.
            for _ in 0..2 {
                apply(lines, &mut port);
                let FakeBoard { dtr, rts, resets, is_for_boot_rom } = port;
                assert_eq!((dtr, rts, resets, is_for_boot_rom), (lines.dtr, lines.rts, 0, false), "{board}");
            }
            // A driver that sets no line by itself.
            let mut port = FakeBoard::default();
            apply(lines, &mut port);
            assert_eq!((port.dtr, port.rts, port.resets), (lines.dtr, lines.rts, 0), "{board}");
        }
    }

    #[test]
    fn boards_say_what_they_want() {
        for board in ["esp32-c3", "esp32-c6"] {
            assert!(!lines_of(board).dtr && !lines_of(board).rts, "{board}");
        }
        // Boards whose firmware reads DTR, and an unknown one.
        for board in ["pico", "pico2", "pico-lora", "nrf52840-dongle", "unknown"] {
            assert!(lines_of(board).dtr, "{board}");
        }
    }
}
