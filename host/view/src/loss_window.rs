//! The recent loss rate of each link.

use fabswarm_sim::swarm::LinkView;
use std::collections::HashMap;

/// Tracks the counts of links from view to view.
#[derive(Debug, Default)]
pub(crate) struct LossWindow {
    /// Copies that each link carried, those that it lost, and the share that it lost lately.
    links: HashMap<(u32, u32), (u64, u64, f64)>,
}

impl LossWindow {
    /// Copies after which an old share counts half.
    const HALF_LIFE: f64 = 8.0;

    /// Returns the recent loss rate of `link`, if it ever carried a copy.
    pub(crate) fn follow(&mut self, link: &LinkView) -> Option<f64> {
        if link.copies == 0 {
            return None;
        }
        let known = self.links.get(&(link.receiver, link.sender)).copied();
        let (copies, lost, share) = known.unwrap_or_default();
        let new_copies = link.copies.saturating_sub(copies);
        let new_share = link.lost.saturating_sub(lost) as f64 / (new_copies as f64).max(1.0);
        let kept = match known {
            Some(_) => (-(new_copies as f64) / Self::HALF_LIFE).exp2(),
            None => 0.0,
        };
        let share = kept * share + (1.0 - kept) * new_share;
        self.links.insert((link.receiver, link.sender), (link.copies, link.lost, share));
        Some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_of_broken_link_rises_within_half_life() {
        let mut window = LossWindow::default();
        let link = |copies, lost| LinkView { copies, lost, ..LinkView::default() };
        assert_eq!(window.follow(&link(0, 0)), None);
        assert_eq!(window.follow(&link(1000, 0)), Some(0.0));
        assert_eq!(window.follow(&link(1000, 0)), Some(0.0));
        let half = window.follow(&link(1008, 8)).unwrap();
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert!(window.follow(&link(1100, 100)).unwrap() > 0.99);
    }
}
