//! `fabswarm boards plan`: rounds per second, airtime, energy and memory of a scenario, before anything is built or flashed.

use anyhow::Result;
use clap::{ArgMatches, Command};
use fabswarm_attach::{BoardRoom, FLASH_YEARS, SavePlan, SwarmPlan};
use fabswarm_sim::record::counted;
use fabswarm_sim::scenario::{self, Scenario, ScenarioCommand};
use std::path::PathBuf;
use std::process::ExitCode;

use super::super::flags;

/// Charge of the battery that lifetimes are given for, at 3.7 V.
const BATTERY_MAH: f64 = 1000.0;

pub(super) fn command() -> Command {
    Command::new("plan")
        .about("Predict rounds per second, airtime, duty cycle, energy and memory of a scenario on a radio; nothing is built")
        .arg(flags::scenario_file())
        .args(flags::arguments(ScenarioCommand::Run))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let file = matches.get_one::<PathBuf>("scenario");
    let flags = flags::given(ScenarioCommand::Run, matches)?;
    let scenario = scenario::resolve(file.map(PathBuf::as_path), &flags)?.scenario;
    out!("{}", report(&scenario, &SwarmPlan::new(&scenario)?));
    Ok(ExitCode::SUCCESS)
}

type Line<'a> = &'a mut dyn FnMut(&str, String);

fn report(scenario: &Scenario, plan: &SwarmPlan) -> String {
    let mut text = String::new();
    let line: Line<'_> = &mut |name: &str, value: String| text.push_str(&format!("{name:<22} {value}\n"));
    list_frames(scenario, plan, line);
    list_slots(plan, line);
    list_memory(plan, line);
    for room in &plan.boards {
        line(&room.board, board_room(plan, room));
    }
    text
}

fn ms(us: f64) -> String {
    format!("{:.2} ms", us / 1000.0)
}

fn list_frames(scenario: &Scenario, plan: &SwarmPlan, line: Line<'_>) {
    let SwarmPlan { radio, needs, .. } = plan;
    line("radio", format!("{}, packets of {} bytes", radio.kind, radio.mtu));
    line("swarm", format!("{} agents, {} frames", needs.agents, scenario.frames.width));
    let SwarmPlan { words, exchanged, room_words, .. } = plan;
    let room = format!("firmware needs room for {room_words}");
    line("scalars", format!("{words} per decision, {exchanged} of them travel; {room}"));
    for width in &plan.widths {
        let packets = counted(width.packets, "packet");
        line(&format!("frames, {}", width.width), format!("{} bytes, {packets}", width.frame_bytes));
    }
}

fn list_slots(plan: &SwarmPlan, line: Line<'_>) {
    let SwarmPlan { slots, radio, .. } = plan;
    let superframe = &slots.superframe;
    let [slot, guard] = [superframe.slot_us, superframe.guard_us].map(|time_us| ms(time_us.into()));
    line("slot", format!("{slot}, of which {guard} guard time"));
    let source = match plan.jitter {
        Some(jitter) if jitter.is_measured => ", measured on hardware",
        Some(_) => ", assumed and measured by nobody",
        None => ", assumed without a board",
    };
    line("time of arrival", format!("off by up to {} µs per hop{source}", radio.tick_us));
    if superframe.shared_us > 0 {
        let (count, time) = (superframe.shared_slots(), ms(superframe.shared_us.into()));
        let turn = format!("a turn of each agent every {} rounds, for full frames", superframe.turn);
        line("shared slots", format!("{count} × {time}, {turn}"));
    }
    line("round", ms(superframe.length_us() as f64));
    line("rounds per second", format!("{:.3}", slots.rounds_per_second));
    let (airtime, percent) = (ms(slots.airtime_us.into()), 100.0 * slots.channel_use);
    line("airtime", format!("{airtime} per frame; the channel is used {percent:.1} % of the time"));
    let limit =
        radio.duty_limit.map(|limit| format!(" (the law allows {:.2} %)", 100.0 * limit)).unwrap_or_default();
    line("duty cycle", format!("{:.2} % per agent{limit}", 100.0 * slots.duty_cycle));
    if slots.mean_mw > 0.0 {
        let hours = BATTERY_MAH * 3.7 / slots.mean_mw;
        let energy = format!(
            "{:.0} mW on average, {:.2} mJ per round and agent; {hours:.0} h on {BATTERY_MAH:.0} mAh",
            slots.mean_mw, slots.round_mj
        );
        line("energy", energy);
    }
}

fn list_memory(plan: &SwarmPlan, line: Line<'_>) {
    line("provisioning record", format!("{} bytes", plan.page_bytes));
    line("RAM", format!("about {} bytes, and the stack", plan.ram_bytes));
    let writes = match plan.saving_agents {
        0 => format!("a decision as often as flash lasts {FLASH_YEARS} years; 16 bytes per start"),
        agents => {
            format!("the whole state in every round on {agents} agents, which keep their memory over crashes")
        }
    };
    line("flash writes", writes);
}

/// Whether the firmware fits a board, and how often it saves decisions there.
fn board_room(plan: &SwarmPlan, room: &BoardRoom) -> String {
    let BoardRoom { ram_bytes, page_bytes, is_enough, has_radio, other_radio, saves, .. } = room;
    let SavePlan { every, erase_ms, whole_hours } = *saves;
    let is_too_slow = plan.saving_agents > 0 && 1000 * erase_ms > plan.slots.superframe.tail_us;
    let verdict = match (is_enough, other_radio) {
        (true, _) if is_too_slow => format!(
            "does not fit: in every round it would erase for {erase_ms} ms in a tail of {}, and its flash would last {whole_hours:.1} h; ",
            ms(plan.slots.superframe.tail_us.into())
        ),
        (true, None) if *has_radio => "fits: ".to_owned(),
        (true, None) => "fits by cable: no radio, ".to_owned(),
        (true, Some(has)) => format!("does not fit: its radio is {has}, "),
        (false, _) => "does not fit: ".to_owned(),
    };
    let saves = match every {
        0 => "no room for decisions".to_owned(),
        every => format!(
            "a decision every {every} rounds ({:.0} s), an erase stops it for {erase_ms} ms",
            f64::from(every) / plan.slots.rounds_per_second
        ),
    };
    format!("{verdict}{ram_bytes} bytes of RAM besides the stack, {page_bytes} for the record; {saves}")
}
