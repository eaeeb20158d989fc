//! Patches and pooling of images stored height, width, channel.

use super::agent::{AgentPass, Workspace};
use crate::program::{Geometry, Op, Squares};
use crate::real::Real;

/// # Panics
/// When `op` belongs to another file.
pub(super) fn step<S: Real>(agent: &mut AgentPass<'_, S>, memory: &mut Workspace<'_, S>, op: &Op) {
    match *op {
        Op::Patches { x, patches, geometry } => {
            let (patches, others) = memory.split(patches);
            let x = others.read(x, (agent.parameters, agent.features));
            let channels = geometry.channels;
            for_each_tap(geometry, |patch, pixel| match pixel {
                Some(pixel) => patches[patch..patch + channels].copy_from_slice(&x[pixel..pixel + channels]),
                None => patches[patch..patch + channels].fill(S::ZERO),
            });
        }
        Op::PatchesBackward { patches, dx, geometry } => {
            let [patches, dx] = memory.many([patches, dx]);
            let channels = geometry.channels;
            dx.fill(S::ZERO);
            for_each_tap(geometry, |patch, pixel| {
                if let Some(pixel) = pixel {
                    dx[pixel..pixel + channels]
                        .iter_mut()
                        .zip(&patches[patch..patch + channels])
                        .for_each(|(dx, &d)| *dx += d);
                }
            });
        }
        Op::Pool { x, out, squares } => {
            let (out, others) = memory.split(out);
            let x = others.read(x, (agent.parameters, agent.features));
            for_each_square(squares, |at, start| out[at] = x[first_largest(x, squares, start)]);
        }
        Op::PoolBackward { x, d, dx, squares } => {
            let [x, d, dx] = memory.many([x, d, dx]);
            for_each_square(squares, |at, start| {
                taps(squares, start).for_each(|tap| dx[tap] = S::ZERO);
                dx[first_largest(x, squares, start)] = d[at];
            });
        }
        _ => panic!("{op:?} is not an operation on images"),
    }
}

/// Visits each tap of each patch: where its channels start in the matrix of patches, and in the image if it lies inside.
fn for_each_tap(g: Geometry, mut visit: impl FnMut(usize, Option<usize>)) {
    let mut patch = 0;
    for image in 0..g.images {
        for out_y in 0..g.height {
            for out_x in 0..g.width {
                for tap in 0..g.kernel * g.kernel {
                    // Below zero wraps to a number far above the size.
                    let y = (out_y + tap / g.kernel).wrapping_sub(g.padding());
                    let x = (out_x + tap % g.kernel).wrapping_sub(g.padding());
                    let is_inside = y < g.height && x < g.width;
                    visit(patch, is_inside.then(|| ((image * g.height + y) * g.width + x) * g.channels));
                    patch += g.channels;
                }
            }
        }
    }
}

/// Visits each output word of a pooling with the first input word of its square.
fn for_each_square(squares: Squares, mut visit: impl FnMut(usize, usize)) {
    let Squares { height, width, channels, size, .. } = squares;
    let (out_height, out_width) = (height / size, width / size);
    for at in 0..squares.pooled_words() {
        let (channel, place) = (at % channels, at / channels);
        let (out_x, out_y, image) =
            (place % out_width, place / out_width % out_height, place / out_width / out_height);
        visit(at, ((image * height + out_y * size) * width + out_x * size) * channels + channel);
    }
}

/// Input words of the square that begins at `start`, row by row.
fn taps(Squares { width, channels, size, .. }: Squares, start: usize) -> impl Iterator<Item = usize> {
    (0..size * size).map(move |tap| start + (tap / size * width + tap % size) * channels)
}

fn first_largest<S: Real>(x: &[S], squares: Squares, start: usize) -> usize {
    taps(squares, start).skip(1).fold(start, |best, tap| if x[tap] > x[best] { tap } else { best })
}
