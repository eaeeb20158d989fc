//! One function per parser. It panics if the parser breaks its contract, and returns whether the parser took the bytes.

use fabswarm_shared::agent::{Agent, PeerSlot};
use fabswarm_shared::heapless;
use fabswarm_shared::provisioning::{Pace, Page, VERSION, checksum};
use fabswarm_shared::slots::{STAMP_MAX, STAMP_ROOM, SlotSchedule, Stamp};
use fabswarm_shared::wire::Error;
use fabswarm_shared::wire::Frame;
use fabswarm_shared::wire::fragment::{Fragmenter, Reassembler};
use fabswarm_shared::wire::payload::Decoder;
use fabswarm_shared::wire::seal::{Key, Opener};
use fabswarm_shared::wire::stream::{self, Deframer};
use std::sync::LazyLock;

/// The key of the sealed seeds.
pub const KEY: [u8; 32] = *b"a key for tests, of thirty-two b";

/// A frame that is read is written and read again as the same frame.
pub fn frame(bytes: &[u8]) -> bool {
    let Ok(frame) = Frame::decode(bytes) else {
        return false;
    };
    let mut out = [0; 512];
    if let Ok(length) = frame.encode(&mut out) {
        assert_eq!(Frame::decode(&out[..length]), Ok(frame));
    }
    true
}

/// A stamped frame, behind a byte with who sealed it (0: nobody), splits into a stamp that says the same after it is written again.
pub fn stamp(bytes: &[u8]) -> bool {
    let Some((&sealer, stamped)) = bytes.split_first() else {
        return false;
    };
    let sealed_by = (sealer > 0).then_some(u16::from(sealer));
    let mut room = [&[0; STAMP_ROOM], stamped].concat();
    let Ok((stamp, frame)) = Stamp::split(&mut room, sealed_by) else {
        return false;
    };
    if Frame::decode(frame).is_ok_and(|frame| sealed_by.is_none_or(|sender| sender == frame.sender())) {
        let mut out = vec![0; STAMP_ROOM + STAMP_MAX + frame.len()];
        let length = stamp.join(frame, sealed_by.is_some(), &mut out[STAMP_ROOM..]).expect("there is room");
        let (again, _) =
            Stamp::split(&mut out[..STAMP_ROOM + length], sealed_by).expect("it was written here");
        assert_eq!(again, stamp);
    }
    true
}

/// Frames come out the same however the stream is cut, and go back in.
pub fn stream(bytes: &[u8]) -> bool {
    let cut = bytes.first().map_or(1, |&byte| usize::from(byte) + 1);
    let frames = deframed(bytes.chunks(bytes.len().max(1)));
    assert_eq!(frames, deframed(bytes.chunks(cut)));
    for frame in frames.iter().flatten() {
        let mut line = [0; 256];
        let length = stream::encode(frame, &mut line).expect("a frame that was read fits");
        assert_eq!(deframed([&line[..length]].into_iter()), [Ok(frame.clone())]);
    }
    frames.iter().any(Result::is_ok)
}

fn deframed<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Vec<Result<Vec<u8>, Error>> {
    let mut deframer = Deframer::<128>::new();
    let mut frames = Vec::new();
    for mut piece in pieces {
        while let Some(frame) = deframer.next_frame(&mut piece) {
            frames.push(frame.map(<[u8]>::to_vec));
        }
    }
    frames
}

/// Packets, each behind a byte of length, never make a frame beyond the buffer.
pub fn fragment(mut bytes: &[u8]) -> bool {
    let mut reassembler = Reassembler::<96, 2>::new();
    let mut taken = false;
    while let Some((&length, rest)) = bytes.split_first() {
        let (packet, rest) = rest.split_at(rest.len().min(length.into()));
        if let Ok(Some(frame)) = reassembler.receive(packet) {
            assert!(!frame.is_empty() && frame.len() <= 96);
            taken = true;
        }
        while let Some(frame) = reassembler.next_frame() {
            assert!(!frame.is_empty() && frame.len() <= 96);
        }
        bytes = rest;
    }
    taken
}

/// A frame of up to four parts is put together whatever its order, its duplicates and up to two forged parts among them. The
/// input is the frame's length, an order, and the forged parts, each behind its length.
pub fn reassembly(bytes: &[u8]) -> bool {
    let &[length, order, duplicate, ref forgeries @ ..] = bytes else {
        return false;
    };
    let frame: Vec<u8> = (0..=length).collect();
    let (mut packets, mut out) = (Vec::new(), [0; 80]);
    let mut fragmenter = Fragmenter::new(&frame, 3, 9, out.len()).expect("a frame that fits");
    while let Some(packet) = fragmenter.next_packet(&mut out).expect("room for a packet") {
        packets.push(packet.to_vec());
    }
    let count = packets.len();
    packets.rotate_left(usize::from(order) % count);
    if order & 0x80 != 0 {
        packets.reverse();
    }
    packets.insert(usize::from(duplicate) % count, packets[usize::from(duplicate >> 4) % count].clone());
    let mut forgeries = forgeries;
    for _ in 0..2 {
        let &[place, index, length, ref rest @ ..] = forgeries else { break };
        let (part, rest) = rest.split_at(rest.len().min(usize::from(length) % 75));
        let header = [count as u8, index % count as u8, 3, 0, 9, 0];
        packets.insert(usize::from(place) % packets.len(), [&header, part].concat());
        forgeries = rest;
    }
    let mut reassembler = Reassembler::<256, 16>::new();
    let mut is_complete = false;
    for packet in &packets {
        let mut next = reassembler.receive(packet).unwrap_or(None).map(<[u8]>::to_vec);
        while let Some(whole) = next {
            is_complete |= whole == frame;
            next = reassembler.next_frame().map(<[u8]>::to_vec);
        }
    }
    assert!(is_complete, "{packets:?}");
    true
}

/// A sealed frame opens once.
pub fn seal(bytes: &[u8]) -> bool {
    static PREPARED: LazyLock<Key> = LazyLock::new(|| Key::new(&KEY));
    let mut opener = Opener::<8>::new();
    let mut out = [0; 512];
    let is_opened = opener.open(&PREPARED, bytes, &mut out).is_ok();
    assert!(!is_opened || opener.open(&PREPARED, bytes, &mut out) == Err(Error::Replayed));
    is_opened
}

/// Two payloads of one sender, behind the number of words, their rounds and the length of the first.
///
/// Whatever is taken is finite; whatever is refused changes nothing.
pub fn payload(bytes: &[u8]) -> bool {
    let &[words, first_round, second_round, length, ref rest @ ..] = bytes else {
        return false;
    };
    let words = usize::from(words % 48);
    let (first, second) = rest.split_at(rest.len().min(length.into()));
    let mut decoder = Decoder::<48>::new();
    let (mut rho, mut taken) = ([0; 48], true);
    for (payload, round) in [(first, first_round), (second, second_round)] {
        let (mut v, mut sigma) = ([0.0; 48], [7; 48]);
        let (rho, v, sigma) = (&mut rho[..words], &mut v[..words], &mut sigma[..words]);
        match decoder.decode(payload, round.into(), rho, v, sigma) {
            Ok(_) => {
                assert!(v.iter().all(|v| v.is_finite()));
                rho.copy_from_slice(sigma);
            }
            Err(_) => {
                assert!(v.iter().all(|&v| v == 0.0) && sigma.iter().all(|&sigma| sigma == 7));
                taken = false;
            }
        }
    }
    taken
}

/// The contents of a provisioning record, a byte with the number of words in front, make a page that reads back or is refused, and an
/// agent that runs or is refused. The header around them is valid, or almost every input would fail at its checksum.
pub fn page(bytes: &[u8]) -> bool {
    let Some((&words, contents)) = bytes.split_first() else {
        return false;
    };
    let words = usize::from(words).min(contents.len() / 4);
    let lengths = [VERSION, words as u32, (contents.len() - 4 * words) as u32];
    let header: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
    let page = [b"FABp", &header[..], &checksum(&header, contents).to_le_bytes(), contents].concat();
    // At an address that words can be read from.
    let mut flash = vec![0.0f32; page.len().div_ceil(4)];
    let flash: &mut [u8] = bytemuck::cast_slice_mut(&mut flash);
    flash[..page.len()].copy_from_slice(&page);
    let Ok(page) = Page::read(&flash[..page.len()], "testing") else {
        return false;
    };
    let mut out = vec![0; 2 * flash.len() + 64];
    assert!(page.write(&mut out).is_ok(), "what was read fits");
    run_page(&page);
    true
}

/// Runs the agent of a page for a few rounds, as a board would.
fn run_page(page: &Page<'_>) {
    const PAGE_WORDS: usize = 32;
    let peers = heapless::Vec::<PeerSlot<PAGE_WORDS>, 4>::new();
    let Ok(mut agent) = Agent::<_, _, PAGE_WORDS>::new(page.agent, page.problem, page.start, peers) else {
        return;
    };
    let mut slots = match page.pace {
        Pace::Slots { superframe, .. } => {
            Some(SlotSchedule::new(superframe, page.agent.id, agent.round(), 0))
        }
        _ => None,
    };
    for _ in 0..8 {
        let mut frame = [0; 512];
        while let Ok(Some(_)) = agent.poll_frame(&mut frame) {}
        agent.end_round();
        if let Some(slots) = &mut slots {
            let _ = (slots.due(), slots.stamp());
            slots.complete();
        }
    }
}
