//! Where to put a beacon so that a fleet gathers where it should.
//!
//! Each robot knows where it is, `s_i`, and where it would like the fleet to gather, `t_i`. The fleet gathers at `y`, as near to
//! all robots as the pull of the beacon at `x` lets it; the beacon should bring it to the targets without straying far from the
//! origin:
//!
//! $$f_i(x, y) = \tfrac12\lVert y - t_i\rVert^2 + \tfrac{e}{2}\lVert x\rVert^2,\qquad
//!   g_i(x, y) = \tfrac12\lVert y - s_i\rVert^2 + \tfrac{p}{2}\lVert y - x\rVert^2$$
//!
//! Boards compile this file too: it needs neither the standard library nor a heap. nalgebra's vectors of a fixed size give the same
//! bits on every machine.

use fabswarm_shared::problem::{Mismatch, NoiseKey, Problem, Shape};
use fabswarm_shared::provisioning::{Error, PageData, PageProblem, WriteError};
use fabswarm_shared::scalar::Scalar;
use nalgebra::{RealField, Vector2, convert};

/// The name that distinguishes its pages from those of other problems.
const NAME: &str = "rendezvous";
/// Coordinates of a place.
pub const COORDINATES: usize = 2;
/// How strongly the beacon pulls, `p`.
pub const PULL: f64 = 2.0;
/// The cost of moving the beacon, `e`.
pub const EFFORT: f64 = 0.1;

/// The problem that boards are built for when they compile this file.
pub type BoardProblem<'a> = Rendezvous<'a, f32>;

/// One robot's share.
#[derive(Clone, Copy, Debug)]
pub struct Rendezvous<'a, S> {
    /// Where the robot is, then where it would like to gather.
    pub places: &'a [S],
}

/// The first place of a slice.
fn place<S: Scalar + RealField>(scalars: &[S]) -> Vector2<S> {
    Vector2::from_fn(|k, _| scalars[k])
}

impl<S: Scalar + RealField> Problem<S> for Rendezvous<'_, S> {
    fn shape(&self) -> Shape {
        Shape { x: COORDINATES, y: COORDINATES, x_is_local: false }
    }

    fn check(&self) -> Result<(), Mismatch> {
        if self.places.len() == 2 * COORDINATES { Ok(()) } else { Err(Mismatch::Length) }
    }

    fn oracle_words(&self) -> usize {
        0
    }

    fn upper_value(&self, x: &[S], y: &[S], _: &mut [S]) -> S {
        let [x, y, target] = [x, y, &self.places[COORDINATES..]].map(place);
        ((y - target).norm_squared() + x.norm_squared() * convert(EFFORT)) * convert(0.5)
    }

    fn lower_value(&self, x: &[S], y: &[S], _: &mut [S]) -> S {
        let [x, y, start] = [x, y, self.places].map(place);
        ((y - start).norm_squared() + (y - x).norm_squared() * convert(PULL)) * convert(0.5)
    }

    fn upper_gradient(&self, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], _: &mut [S]) {
        let [x, y, target] = [x, y, &self.places[COORDINATES..]].map(place);
        dx.copy_from_slice((x * convert::<f64, S>(EFFORT)).as_slice());
        dy.copy_from_slice((y - target).as_slice());
    }

    fn lower_gradient(&self, _: NoiseKey, x: &[S], y: &[S], dx: &mut [S], dy: &mut [S], _: &mut [S]) {
        let [x, y, start] = [x, y, self.places].map(place);
        let pull = (y - x) * convert::<f64, S>(PULL);
        dx.copy_from_slice((-pull).as_slice());
        dy.copy_from_slice((y - start + pull).as_slice());
    }
}

/// How boards get it: its numbers are words of the page, which a board reads where they are.
impl<'a> PageProblem<'a> for Rendezvous<'a, f32> {
    fn page_data(&self) -> Result<PageData<'a>, WriteError> {
        Ok(PageData::own(NAME, self.places, &[]))
    }

    fn from_page(data: PageData<'a>) -> Result<Self, Error> {
        let (places, _) = data.take_own(NAME)?;
        Ok(Self { places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::problem::check_gradients;

    #[test]
    fn gradients_match_finite_differences() {
        let problem = Rendezvous { places: &[0.3, -1.0, 2.0, 0.5] };
        check_gradients::<f64, 16>(&problem, &[0.1, -0.7, 1.3, 0.2, -0.4, 0.9]).unwrap();
    }

    #[test]
    fn a_page_with_too_few_places_is_noticed() {
        assert_eq!(Rendezvous { places: &[0.0_f32; 3] }.check(), Err(Mismatch::Length));
    }
}
