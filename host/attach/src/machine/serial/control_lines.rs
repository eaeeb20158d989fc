//! DTR and RTS of a port, which boards use in different ways.

use crate::firmware::board_file::BoardFile;
use fabswarm_board_file::SerialPort as ControlLines;
use serialport::{SerialPort, TTYPort};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pin {
    Dtr,
    Rts,
}

/// The lines that the `board.toml` of `board` asks for. By default those that Linux sets when it opens a port: a board on USB sends
/// only while DTR is set, and no board is reset by both.
pub(crate) fn lines_of(board: &str) -> ControlLines {
    BoardFile::read(board).map(|file| file.serial).unwrap_or_default()
}

/// Sets the lines of a port that was opened.
pub(super) fn apply(lines: ControlLines, port: &mut TTYPort) {
    for pin in in_order(lines) {
        // A pseudo-terminal is "not a typewriter" and has neither.
        let _ = match pin {
            Pin::Dtr => port.write_data_terminal_ready(lines.dtr),
            Pin::Rts => port.write_request_to_send(lines.rts),
        };
    }
}

/// The order in which to set the lines. RTS is never set without DTR, not even for a moment: that resets an ESP32.
const fn in_order(lines: ControlLines) -> [Pin; 2] {
    if lines.rts { [Pin::Dtr, Pin::Rts] } else { [Pin::Rts, Pin::Dtr] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The USB port of an ESP32 (technical reference manual, table of the serial port's lines) resets its chip by RTS without DTR, and
    /// starts the boot ROM by DTR without RTS.
    #[test]
    fn opening_a_port_resets_no_board() {
        for board in crate::board_names() {
            let lines = lines_of(&board);
            // As Linux opens it, with both lines at once, and by a driver that sets no line by itself.
            for opened in [true, false] {
                let (mut dtr, mut rts) = (opened, opened);
                // Opened a second time after a cable was unplugged.
                for pin in [in_order(lines), in_order(lines)].concat() {
                    match pin {
                        Pin::Dtr => dtr = lines.dtr,
                        Pin::Rts => rts = lines.rts,
                    }
                    assert!(dtr || !rts, "{board} is reset");
                }
                assert_eq!((dtr, rts), (lines.dtr, lines.rts), "{board}");
                assert!(!dtr || rts, "the boot ROM of {board} starts");
            }
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
