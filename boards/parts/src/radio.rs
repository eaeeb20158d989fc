//! An agent whose frames go by radio.

use embassy_futures::join::join;
use embedded_io_async::{Read, Write};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_firmware::{
    Parts,
    health::Health,
    link::{FragmentedLink, Link, RadioQueue, SerialLink, SplitLink, keep_listening},
    marks::MarkedLink,
    run,
    storage::PageFlash,
};

/// Frames on their way in at once: four for each of two neighbours that send at the same time.
const SLOTS: usize = 8;

/// Runs an agent whose frames go by `radio`, in packets of up to `MTU` bytes, and everything else by the serial port `port`. `SENT` packets wait
/// to be sent.
pub async fn run_by_radio<const MTU: usize, const SENT: usize>(
    radio: &mut impl Link,
    port: impl Read + Write,
    parts: Parts<'_, (), impl NorFlash + PageFlash, impl Health>,
) -> ! {
    let queue = RadioQueue::<MTU, SENT>::default();
    let Parts { board, chip, window, page, buffers, link: (), storage, health, marks } = parts;
    let link = SplitLink::new(FragmentedLink::<_, MTU, SLOTS>::new(&queue), SerialLink::new(port));
    let agent = run(Parts { board, chip, window, page, buffers, link, storage, health, marks });
    join(keep_listening(&mut MarkedLink::new(radio, marks), &queue), agent).await.1
}
