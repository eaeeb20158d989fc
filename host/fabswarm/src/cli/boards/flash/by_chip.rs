//! Boards that are known by the numbers of their chips.

use super::FlashOrder;
use fabswarm_attach::{ChipFacts, ChipPage};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::FlashedBoard;
use std::process::ExitCode;

/// The page for a chip, if it is one of the chosen agents. A chip that cannot tell its number is the only one.
pub(super) fn page_of(order: &FlashOrder, facts: &ChipFacts) -> Result<Option<ChipPage>, String> {
    let FlashOrder { board, pages, chosen, .. } = order;
    let swarm = pages.swarm;
    let agent = match facts.number {
        Some(number) => swarm.agent_of(number).filter(|agent| chosen.contains(agent)),
        None => chosen.first().copied(),
    };
    let Some(agent) = agent else { return Ok(None) };
    // Both what the board has counted and what the file has given away: either may be lost.
    let next = swarm.next_boot(&facts.boots).map_err(|error| error.to_string())?;
    let boot = order.take_boot(agent, next).map_err(|error| error.to_string())?;
    let bytes = pages.page(&board.name, agent, boot).map_err(|error| error.to_string())?;
    Ok(Some(ChipPage { agent, chip: swarm.chips.get(&agent).copied(), bytes }))
}

/// Prints what became of each board, and who was not flashed.
pub(super) fn print_outcomes<'a>(
    order: &FlashOrder,
    names: impl Iterator<Item = &'a str>,
    outcomes: Vec<Result<Option<FlashedBoard>, Diagnostic>>,
) -> ExitCode {
    let mut left = order.chosen.clone();
    let mut has_failed = false;
    for (name, outcome) in names.zip(outcomes) {
        match outcome {
            Ok(Some(done)) => {
                left.retain(|agent| *agent != done.agent);
                println!("agent {}: {name} ({} bytes, read back and equal)", done.agent, done.bytes);
            }
            Ok(None) => println!("{name}: its chip is none of these agents in the swarm file: left as it is"),
            Err(error) => {
                eprintln!("error: {name}: {error}");
                has_failed = true;
            }
        }
    }
    if !left.is_empty() {
        let left: Vec<String> = left.iter().map(usize::to_string).collect();
        println!("not flashed: agents {}; their chips were not found, or have failed", left.join(", "));
    }
    if has_failed { ExitCode::from(super::super::FAILED) } else { ExitCode::SUCCESS }
}
