//! A small plot of characters: each braille character holds two by four dots.

/// Draws `points` on a grid of `columns` by `rows` characters; both coordinates run from 0 to 1, y upwards.
pub(super) fn plot(points: impl Iterator<Item = (f64, f64)>, columns: usize, rows: usize) -> Vec<String> {
    let (width, height) = (columns * 2, rows * 4);
    let mut cells = vec![0_u8; columns * rows];
    let mut dot = |x: usize, y: usize| cells[y / 4 * columns + x / 2] |= BITS[y % 4][x % 2];
    let mut before: Option<(usize, usize)> = None;
    for (x, y) in points {
        let x = (x.clamp(0.0, 1.0) * (width - 1) as f64).round() as usize;
        let y = ((1.0 - y.clamp(0.0, 1.0)) * (height - 1) as f64).round() as usize;
        // Steep parts would fall into single dots: fill the column between neighbours.
        let (low, high) = match before {
            Some((last_x, last_y)) if x - last_x <= 1 && last_y.abs_diff(y) > 1 => {
                (last_y.min(y), last_y.max(y))
            }
            _ => (y, y),
        };
        for y in low..=high {
            dot(x, y);
        }
        before = Some((x, y));
    }
    cells
        .chunks_exact(columns)
        .map(|row| row.iter().filter_map(|&bits| char::from_u32(0x2800 + u32::from(bits))).collect())
        .collect()
}

/// The bit of each dot of a character, by row and column; Unicode numbers the dots in the order they were invented.
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_line_goes_from_corner_to_corner() {
        let line = (0..=100).map(|step| (f64::from(step) / 100.0, 1.0 - f64::from(step) / 100.0));
        assert_eq!(plot(line, 4, 2), ["⠑⢄⠀⠀", "⠀⠀⠑⢄"]);
    }

    #[test]
    fn values_outside_the_grid_stay_on_its_edge() {
        assert_eq!(plot([(-1.0, 2.0), (9.0, -3.0)].into_iter(), 2, 1), ["⠁⢀"]);
    }
}
