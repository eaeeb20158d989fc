//! How agents are configured and made.

use super::*;

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

/// Ten words in full are 81 bytes, a full set of members 128, and the largest numbers in front of that 24.
#[test]
fn the_largest_frame_is_that_of_a_full_set_or_of_all_words() {
    assert_eq!(agent(config(0)).largest_frame(), 24 + 128);
}
