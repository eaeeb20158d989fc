//! fabswarm on QEMU's `mps2-an386`.
#![no_std]
#![no_main]
mod clock;
mod ethernet;
mod executor;
mod interrupts;
mod log;
mod registers;
mod uart;

use embassy_executor::Spawner;
use fabswarm_firmware::link::Link;

#[embassy_executor::main(executor = "executor::Executor", entry = "cortex_m_rt::entry")]
async fn main(_spawner: Spawner) {
    log::start();
    clock::start();
    let _u = uart::Uart::start();
    let mut link = ethernet::Ethernet::start();
    defmt::info!("up");
    let mut b = [0; 600];
    loop {
        match embassy_time::with_timeout(embassy_time::Duration::from_millis(20), link.receive(&mut b)).await {
            Ok(n) => {let p = 0x2100_0100 as *mut u32; let k = unsafe { p.read_volatile() } ; unsafe {p.write_volatile(k+1)}; b[0] = k as u8; link.send(&b[..n]).await},
            Err(_) => link.send(b"hello").await,
        }
    }
}
