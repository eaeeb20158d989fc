//! Every method and every way to mix, on hosts and in one process.

use super::*;

/// Four agents that train for 27 rounds.
const LONGER: &str = "[swarm]\nagents = 4\n[training]\ndata = \"sample\"\nmodel_width = 12\nbatch = 8\ntrain_samples = 300\nepochs = 3\n";
/// Everything that can go wrong on the air.
const WORST: &str = "[faults]\niid_loss = 0.2\nburst_loss = 0.3\ndelay_rounds = 3\nduplication = 0.3\nreordering = 0.3\nbit_corruption = 0.2\nradio_off = \"1@5+20\"\nfrozen = \"3@6+5\"\ncrashes = \"2@8+6\"\n[intruder]\nreplay = 0.5\nwrong_key = 0.5\n";
/// Agents that adapt first, with a symmetric penalty that has minima.
const SHARPER: &str =
    "order = \"adapt-first\"\npenalty = \"symmetric\"\nlambda = 8.0\nnormalise_by_lambda = true\n";

#[test]
fn hosts_compute_the_bits_of_one_process_by_every_method() {
    let ledger = "kind = \"ledger\"\n";
    let forgets = "[faults]\ncrashes = \"2@8+6 forgets\"\n";
    let seldom = "[network]\nblocks = 2\nexchange_every = 3\n";
    let momentum = "momentum = 0.5\n";
    let sharper_ledger = format!("{ledger}{SHARPER}");
    let ledger_and_momentum = format!("{ledger}{momentum}");
    // The method, the rule of one level, keys of the algorithm, and other sections.
    for (method, rule, algorithm, more) in [
        ("cleaning", "", "", ""),
        ("cleaning", "", "", "[faults]\niid_loss = 0.3\n"),
        ("cleaning", "", &*ledger_and_momentum, ""),
        ("cleaning", "", ledger, WORST),
        ("tuning", "", momentum, ""),
        ("tuning", "", ledger, WORST),
        ("cleaning", "", ledger, forgets),
        ("single-level-all", "", "", ""),
        ("single-level-all", "push-sgd", "", ""),
        ("single-level-clean", "push-diging", "", ""),
        ("single-level-noisy", "push-saga", "", ""),
        ("single-level-all", "push-asgd", "momentum = 0.2\n", ""),
        ("cleaning", "", "", seldom),
        ("cleaning", "", SHARPER, ""),
        ("tuning", "", &*format!("{SHARPER}{momentum}"), ""),
        ("cleaning", "", &*sharper_ledger, WORST),
        ("tuning", "", &*sharper_ledger, WORST),
        ("tuning", "", ledger, &*format!("{seldom}{WORST}")),
    ] {
        let rule = if rule.is_empty() { String::new() } else { format!("rule = \"{rule}\"\n") };
        let momentum = if algorithm.contains("momentum") { "" } else { "momentum = 0.0\n" };
        let text = format!(
            "{LONGER}method = \"{method}\"\n{rule}[algorithm]\neta_x = 0.01\n{momentum}{algorithm}{more}"
        );
        println!("{text}");
        let case = TrainingCase::new(&text);
        for count in [2, 3] {
            case.compare(case.hosts(count, 11, 0.0).cluster(BUILD), HOST_TIMEOUT);
        }
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_hosts() {
    let of = |folder, epochs: usize| {
        let text = format!("{LONGER}[algorithm]\nkind = \"ledger\"\n{WORST}");
        TrainingCase::in_folder(folder, &text.replace("epochs = 3", &format!("epochs = {epochs}")))
    };
    let mut case = of(tempfile::tempdir().unwrap(), 3);
    let (expected, _) = case.train(None, "whole", false);
    for (epochs, count) in [(1, 2), (2, 3)] {
        case = of(case.folder, epochs);
        let hosts = case.hosts(count, 11, 0.0);
        let swarm = case.start(hosts.cluster(BUILD), HOST_TIMEOUT).unwrap();
        case.train(Some(&swarm), "parts", epochs > 1);
    }
    case = of(case.folder, 3);
    let (resumed, _) = case.train(None, "parts", true);
    assert!(resumed.mean == expected.mean && resumed.weights == expected.weights);
    assert!(case.checkpoint("parts") == case.checkpoint("whole"));
}
