//! How agents are configured and made.

use super::*;

#[test]
fn a_configuration_has_what_it_was_given() {
    let steps = Steps { x: 0.1, y: 0.2, z: 0.3, momentum: 0.4 };
    let penalty = Penalty { lambda: 7.0, normalise: false, form: PenaltyForm::OneSided };
    let mut audience = MemberSet::default();
    audience.insert(5);
    let links = Links::Known { audience, senders: MemberSet::default() };
    let patience = NonZeroU32::new(9);
    let phases = crate::fab::Phases { gather_rounds: 3, descend_rounds: 9 };
    let config = Config::founder(3, 10)
        .with_id(4)
        .with_mode(Mode::FreeRunning)
        .with_steps(steps)
        .with_order(Order::AdaptFirst)
        .with_phases(phases)
        .with_penalty(penalty)
        .with_self_weight(0.5)
        .with_links(links)
        .with_width(Width::Byte)
        .with_give_up_after(patience)
        .with_late_rounds(6)
        .with_send_threshold(0.25)
        .with_boot(8);
    let expected = Config {
        id: 4,
        founders: 10,
        mode: Mode::FreeRunning,
        steps,
        order: Order::AdaptFirst,
        phases,
        penalty,
        self_weight: 0.5,
        links,
        width: Width::Byte,
        give_up_after: patience,
        late_rounds: 6,
        send_threshold: 0.25,
        boot: 8,
    };
    assert_eq!(config, expected);
}

#[test]
fn agents_that_do_not_fit_are_refused() {
    let problem = problem(0);
    let make =
        |config, start: &[f32]| Agent::<_, _, WORDS>::new(config, problem, start, Peers4::new()).map(|_| ());
    assert_eq!(make(config(0), &[0.0; 3]), Err(Error::Start));
    for (id, founders, made) in [
        (1023, 1024, Ok(())),
        (1024, 1024, Err(Error::Identity)),
        (0, 1025, Err(Error::Identity)),
        (0, u16::MAX, Err(Error::Identity)),
    ] {
        let config = Config { founders, ..config(id) };
        assert_eq!(make(config, &[0.0; WORDS]), made, "agent {id} of {founders}");
    }
    let fault = |cause| Err(Error::Gradient(Fault::new(0, cause)));
    assert_eq!(make(config(0), &[1e9; WORDS]), fault(FaultCause::GradientOutOfRange));
    assert_eq!(make(config(0), &[f32::NAN; WORDS]), fault(FaultCause::GradientNotFinite));
    let narrow =
        Agent::<_, _, 4>::new(config(0), problem, &[0.0; WORDS], heapless::Vec::<_, 8>::new()).map(|_| ());
    assert_eq!(narrow, Err(Error::TooLarge { needed: 10, room: 4 }));
}

#[test]
fn a_place_is_empty_after_an_error() {
    let mut place: Option<Small> = Some(agent(config(1)));
    for start in [&[0.0; 3][..], &[1e9; WORDS]] {
        assert!(Agent::new_in(&mut place, config(0), problem(0), start, Peers4::new()).is_err());
        assert!(place.is_none());
    }
    let made = Agent::new_in(&mut place, config(2), problem(2), &[0.0; WORDS], Peers4::new());
    assert_eq!(made.unwrap().id(), 2);
    assert!(place.is_some());
}
