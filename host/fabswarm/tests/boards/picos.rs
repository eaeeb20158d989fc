//! Emulated Picos behind serial ports.

use crate::plugged::PluggedBoard;
use crate::support::{Folder, Running, wait_for};
use fabswarm_attach::BoardKind;

mod long {
    use super::*;

    /// One Pico is unplugged, and runs on as with a battery; the other is reset by the scenario. Both rejoin by themselves.
    #[test]
    #[ignore = "long: builds the firmware of the Pico"]
    fn a_pico_is_replugged_by_uart() {
        let folder = Folder::new();
        let boards = [1, 2].map(|chip| PluggedBoard::of_kind(BoardKind::Pico, &folder, chip));
        wait_for("the start", || boards.iter().all(PluggedBoard::has_spoken));
        let swarm =
            format!("--boards serial:{}/usb-*:2,in-process --crashes '1@20+5 forgets'", folder.display());
        let line = format!("run {swarm} --rounds 1000000 --error-below 0 --out out");
        let mut host = Running::start(folder.fabswarm(&line));
        host.wait_for("the crash", |_| folder.last_round("out") > 40);
        boards[0].unplug();
        host.wait_for("the loss", |host| host.said().contains("agent 0: its board was unplugged in round"));
        boards[0].replug();
        host.wait_for("the return", |host| host.said().contains("agent 0: its board is back in boot "));
        let back = folder.last_round("out");
        host.wait_for("the rest", |_| folder.last_round("out") > back.max(100) + 30);
        let ended = host.interrupt();
        let summary = folder.summary("out");
        // Of the Pico that was not unplugged, every round but those of its crash; of the other, those before and after.
        let (checks, rounds) =
            (summary["digest_checks"].as_u64().unwrap(), summary["rounds"].as_u64().unwrap());
        assert!(checks > rounds - 5 + 40 && rounds >= 100, "{summary:#}\n{ended}");
        assert_eq!(summary["digest_mismatches"], 0);
    }
}
