//! Data in, decisions out: a board's sensor, and its line to the machine that acts on the swarm's decisions.

use core::{
    cell::Cell,
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::{Pin, pin},
    task::Poll,
};
use embassy_futures::select::{Either, select};
use embassy_sync::{blocking_mutex::raw::NoopRawMutex, signal::Signal};
use embassy_time::{Duration, Timer};
use heapless::Vec;

/// Measures what the agent's problem is about.
#[allow(async_fn_in_trait, reason = "one executor on one core: the futures need not be Send")]
pub trait Sensor {
    /// Whether there is one.
    const IS_THERE: bool = true;

    /// Measures for a round. Returns `None` if that fails; the future is dropped when the next round begins. Where a host simulates the
    /// air, the round waits for the reading, for up to 200 ms.
    async fn read(&mut self, round: u32) -> Option<f32>;

    /// Returns how often it sent something else than a reading since its start.
    fn refused(&self) -> u32 {
        0
    }
}

/// A board's line to the machine that acts on its agent's decisions, such as an autopilot.
pub trait Outlet {
    /// Whether there is one.
    const IS_THERE: bool = true;

    /// Writes a whole message, or drops it: never waits.
    fn write(&mut self, message: &[u8]);
}

/// A board without a sensor, and without somebody who acts on its decisions.
#[derive(Clone, Copy, Debug)]
pub struct Unconnected;

impl Sensor for Unconnected {
    const IS_THERE: bool = false;

    async fn read(&mut self, _: u32) -> Option<f32> {
        None
    }
}

impl Outlet for Unconnected {
    const IS_THERE: bool = false;

    fn write(&mut self, _: &[u8]) {}
}

/// Between a sensor, which measures beside the rounds, and the rounds.
pub(crate) struct ReadingExchange<S> {
    request: Signal<NoopRawMutex, u32>,
    reading: Signal<NoopRawMutex, Option<f32>>,
    refused: Cell<u32>,
    sensor: PhantomData<S>,
}

impl<S: Sensor> ReadingExchange<S> {
    pub(crate) const fn new() -> Self {
        Self { request: Signal::new(), reading: Signal::new(), refused: Cell::new(0), sensor: PhantomData }
    }

    /// Goes through `rounds` with [`serve`](Self::serve) beside them. With a `select`, code would stay on boards without a sensor.
    pub(crate) fn beside<R>(
        &self,
        mut serve: Pin<&mut impl Future>,
        mut rounds: Pin<&mut impl Future<Output = R>>,
    ) -> impl Future<Output = R> {
        poll_fn(move |context| {
            if S::IS_THERE {
                let _ = serve.as_mut().poll(context);
            }
            rounds.as_mut().poll(context)
        })
    }

    /// Measures on request, forever. A newer request ends the measurement of an older one.
    pub(crate) async fn serve(&self, mut sensor: S) -> ! {
        let mut round = self.request.wait().await;
        loop {
            let outcome = select(self.request.wait(), sensor.read(round)).await;
            self.refused.set(sensor.refused());
            round = match outcome {
                Either::First(newer) => newer,
                Either::Second(reading) => {
                    self.reading.signal(reading);
                    self.request.wait().await
                }
            };
        }
    }

    /// Requests the reading of a round. Those that came before are no longer wanted.
    pub(crate) fn request(&self, round: u32) {
        self.reading.reset();
        self.request.signal(round);
    }

    /// Waits until the sensor has measured, for up to `within`.
    pub(crate) fn wait(&self, within: Duration) -> impl Future<Output = Option<f32>> {
        let mut expiry = Timer::after(within);
        poll_fn(move |context| {
            if !S::IS_THERE {
                return Poll::Ready(None);
            }
            let reading = pin!(self.reading.wait()).poll(context);
            if reading.is_pending() { Pin::new(&mut expiry).poll(context).map(|()| None) } else { reading }
        })
    }

    /// Takes the reading that was requested, if it is there.
    pub(crate) fn take(&self) -> Option<f32> {
        self.reading.try_take().flatten()
    }

    pub(crate) fn refused(&self) -> u32 {
        self.refused.get()
    }
}

/// Readings beyond this are refused: their gradients would leave the range of the ledger and stop the agent.
const LARGEST: f32 = 1000.0;

/// Bytes of the longest line.
const LINE: usize = 16;

/// Reads a sensor's serial line: one decimal number in ASCII per line, such as `-12.5`.
#[derive(Debug, Default)]
pub struct LineReader {
    line: Vec<u8, LINE>,
    /// Whether the line is longer than any reading.
    is_too_long: bool,
    newest: Option<f32>,
    refused: u32,
}

impl LineReader {
    /// A reader at the start of a line.
    #[must_use]
    pub const fn new() -> Self {
        Self { line: Vec::new(), is_too_long: false, newest: None, refused: 0 }
    }

    /// Reads the next byte of the line.
    pub fn push(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                match parse(&self.line).filter(|_| !self.is_too_long) {
                    Some(value) => self.newest = Some(value),
                    None => self.refused = self.refused.saturating_add(1),
                }
                self.line.clear();
                self.is_too_long = false;
            }
            b'\r' => {}
            _ => self.is_too_long |= self.line.push(byte).is_err(),
        }
    }

    /// Takes the newest reading since the last call.
    pub const fn take(&mut self) -> Option<f32> {
        self.newest.take()
    }

    /// Returns how many lines were no readings.
    #[must_use]
    pub const fn refused(&self) -> u32 {
        self.refused
    }
}

/// Parses a decimal number. `str::parse` would take 10 KiB of flash, and reads infinities too.
fn parse(line: &[u8]) -> Option<f32> {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    let (mut number, mut scale, mut has_point, mut has_digit) = (0_u32, 1.0, false, false);
    for &byte in digits {
        match byte {
            b'.' if !has_point => has_point = true,
            b'0'..=b'9' => {
                number = number.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?;
                scale *= if has_point { 10.0 } else { 1.0 };
                has_digit = true;
            }
            _ => return None,
        }
    }
    let value = number as f32 / scale;
    (has_digit && value <= LARGEST).then_some(if digits.len() < line.len() { -value } else { value })
}

/// Writes the line with which a board requests the reading of a round, for sensors that are asked.
#[must_use]
pub fn request_line(mut round: u32) -> Vec<u8, LINE> {
    let mut line = Vec::new();
    // Has room for ten digits and the end of the line.
    let _ = line.push(b'\n');
    while line.len() == 1 || round > 0 {
        let _ = line.push(b'0' + (round % 10) as u8);
        round /= 10;
    }
    line.reverse();
    line
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> (Option<f32>, u32) {
        let mut reader = LineReader::new();
        bytes.iter().for_each(|&byte| reader.push(byte));
        (reader.take(), reader.refused())
    }

    #[test]
    fn lines_that_are_no_reading_are_counted() {
        assert_eq!(read(b"1.25\n"), (Some(1.25), 0));
        assert_eq!(read(b"7\r\n-0.5\r\n"), (Some(-0.5), 0), "the newest counts");
        assert_eq!(read(b"2\n3"), (Some(2.0), 0), "a line that has not ended");
        for line in
            ["", "-", ".", "1.2.3", "--1", "1e3", "nan", "inf", "1 2", "1000.1", "99999999999", "0x1F"]
        {
            assert_eq!(read(std::format!("4\n{line}\n").as_bytes()), (Some(4.0), 1), "{line}");
        }
        // A long line is refused as a whole, and does not spoil the next.
        assert_eq!(read(b"0.12345678901234567890\n5\n"), (Some(5.0), 1));
        assert_eq!(&request_line(0)[..], b"0\n");
        assert_eq!(&request_line(u32::MAX)[..], b"4294967295\n");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: std::vec::Vec<u8>) {
            let (reading, _) = read(&bytes);
            prop_assert!(reading.is_none_or(|value| value.abs() <= LARGEST));
        }

        #[test]
        fn what_a_sensor_prints_is_read(value in -999.0_f32..999.0) {
            let (reading, refused) = read(std::format!("{value:.5}\n").as_bytes());
            prop_assert!(refused == 0 && (reading.unwrap() - value).abs() < 1e-3);
        }
    }
}
