//! When an agent lets its peers forget receptions.

use super::*;

/// Peers that count how often they might forget receptions.
struct Counting {
    room: Peers4,
    unlisted: u32,
}

impl Peers<WORDS> for Counting {
    fn len(&self) -> usize {
        Peers::len(&self.room)
    }
    fn get(&self, place: usize) -> &Peer<WORDS> {
        Peers::get(&self.room, place)
    }
    fn get_mut(&mut self, place: usize) -> &mut Peer<WORDS> {
        Peers::get_mut(&mut self.room, place)
    }
    fn in_order(&self) -> impl Iterator<Item = &Peer<WORDS>> {
        self.room.in_order()
    }
    fn find(&self, sender: u16) -> Result<usize, usize> {
        self.room.find(sender)
    }
    fn insert(&mut self, place: usize, sender: u16) -> bool {
        Peers::insert(&mut self.room, place, sender)
    }
    fn clear(&mut self) {
        Peers::clear(&mut self.room);
    }
    fn list(&mut self, place: usize) -> (&mut Peer<WORDS>, &mut Reception<WORDS>) {
        self.room.list(place)
    }
    fn listed(&self) -> usize {
        self.room.listed()
    }
    fn listed_at(&self, index: usize) -> (&Peer<WORDS>, &Reception<WORDS>) {
        self.room.listed_at(index)
    }
    fn listed_at_mut(&mut self, index: usize) -> (&mut Peer<WORDS>, &mut Reception<WORDS>) {
        self.room.listed_at_mut(index)
    }
    fn unlist_idle(&mut self) {
        self.unlisted += 1;
    }
}

/// A narrow payload is read with what its receiver remembers of those before it.
#[test]
fn receptions_are_kept_where_payloads_build_on_each_other() {
    for (width, unlisted) in [(Width::Full, 6), (Width::Half, 0), (Width::Byte, 0)] {
        let mut peers = Counting { room: Peers4::new(), unlisted: 0 };
        let config = Config { width, ..config(0) };
        let mut agent = Agent::new(config, problem(0), &[0.0; WORDS], &mut peers).unwrap();
        (0..5).for_each(|_| assert_eq!(agent.end_round().fault, None));
        assert_eq!(peers.unlisted, unlisted, "{width:?}");
    }
}
