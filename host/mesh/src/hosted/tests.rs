use std::sync::mpsc;

use super::*;
use crate::daemon::tests::fake::ReplyChannel;
use crate::message::{HostBlock, HostMessage, PROTOCOL, unpack};
use fabswarm_large::device::Block;
use fabswarm_large::fab::StatePart;

fn run_of(hosts: usize) -> HostedRun {
    let place = |host: usize| HostBlock {
        name: format!("h{host}"),
        address: String::new(),
        block: Block { first: host, agents: 1 },
    };
    HostedRun::new(RunPlan {
        run: "a".to_owned(),
        protocol: PROTOCOL,
        build: String::new(),
        digest: String::new(),
        scenario: String::new(),
        hosts: (0..hosts).map(place).collect(),
        host: 0,
        host_timeout_ms: 60_000,
        shares_memory: false,
    })
}

fn ask(run: &HostedRun, request: Request) -> mpsc::Receiver<HostMessage> {
    let (sender, receiver) = mpsc::channel();
    run.answer(request, &[], Box::new(ReplyChannel(sender)));
    receiver
}

/// Two others take the parcels of 1,000 rounds and ask for each twice: what is kept does not grow.
#[test]
fn what_a_host_keeps_does_not_grow_with_the_rounds() {
    const ROUNDS: u32 = 1000;
    let (run, is_over) = (run_of(3), AtomicBool::new(false));
    let fetch = |to: usize| {
        let mut most = 0;
        for round in 1..=ROUNDS {
            // The first question is forgotten by who asked it.
            let part = ParcelPart::Decisions;
            let request = || Request::Parcel { round, part, to, chunks: Vec::new() };
            drop(ask(&run, request()));
            let answer = ask(&run, request()).recv().unwrap();
            let Response::Chunk(header) = unpack(&answer.head, &[&answer.body]).unwrap() else {
                panic!("no chunk")
            };
            assert_eq!((header.round, answer.body.to_vec()), (round, vec![to as u8; 64]));
            let state = run.state();
            most = most.max(state.parcels.len() + state.waiting.len() + state.tasks.len());
        }
        most
    };
    let most = std::thread::scope(|scope| {
        scope.spawn(|| run.answer_waiting(&is_over));
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                (1..3).for_each(|to| {
                    run.offer(round, ParcelPart::Decisions, to, vec![to as u8; 64].into()).unwrap()
                });
            }
        });
        let fetch = &fetch;
        let others: Vec<_> = (1..3).map(|to| scope.spawn(move || fetch(to))).collect();
        let found: Vec<_> = others.into_iter().map(|other| other.join()).collect();
        drop(ask(&run, Request::End));
        found.into_iter().map(|most| most.unwrap()).max().unwrap()
    });
    // Parcels of the round that has begun and of those that are kept, and two questions of each.
    assert!(most <= 2 * (KEPT_ROUNDS + 1) + 2 * 2, "{most} things were kept");
    let traffic = run.status().traffic;
    assert_eq!(traffic.planned_sent, u64::from(2 * 64 * ROUNDS));
}

#[test]
fn a_question_to_a_host_that_is_busy_is_answered_in_time() {
    let mut run = run_of(1);
    run.plan.host_timeout_ms = 40;
    std::thread::scope(|scope| {
        scope.spawn(|| run.answer_waiting(&AtomicBool::new(false)));
        let answer = ask(&run, Request::Imbalances { round: 1, offset: 0 }).recv().unwrap();
        assert_eq!(unpack::<Response>(&answer.head, &[]).unwrap(), Response::NotYet);
        drop(ask(&run, Request::End));
    });
}

/// A host with a certificate may ask what it likes: what waits for it is bounded, and it gets no more than there is.
#[test]
fn questions_of_a_hostile_member_fill_no_memory() {
    let run = run_of(2);
    let part = ParcelPart::Decisions;
    let read = |offset| Request::Read { round: 0, part: StatePart::Decay, offset, words: 1, shares: false };
    let is_refused = |answers: &mpsc::Receiver<HostMessage>| {
        let answer = answers.try_recv();
        answer.is_ok_and(|answer| unpack::<Response>(&answer.head, &[]).unwrap() == Response::NotYet)
    };
    let tasks = (0..100).map(|offset| ask(&run, read(offset))).collect::<Vec<_>>();
    assert_eq!(tasks.iter().filter(|answer| is_refused(answer)).count(), 100 - MOST_TASKS);
    let parcel = |round| Request::Parcel { round, part, to: 1, chunks: vec![0; 1000] };
    let parcels = (1..=2000).rev().map(|round| ask(&run, parcel(round))).collect::<Vec<_>>();
    assert_eq!(parcels.iter().filter(|answer| is_refused(answer)).count(), 2000 - MOST_WAITING);
    run.offer(2000, part, 1, vec![7; 64].into()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| run.answer_waiting(&AtomicBool::new(false)));
        let first = parcels[0].recv().unwrap();
        assert!(matches!(unpack::<Response>(&first.head, &[]).unwrap(), Response::Chunk(_)));
        assert!(parcels[0].recv().is_err(), "a chunk is sent once");
        drop(ask(&run, Request::End));
    });
}
