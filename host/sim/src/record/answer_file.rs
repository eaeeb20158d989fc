//! The answer as NumPy's archive of arrays: `numpy.load("answer.npz")["x"]` has a row for each agent.

use std::io::{self, Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::swarm::Answer;

/// The bytes of `answer.npz`.
///
/// # Errors
/// When it is larger than such an archive can be.
pub fn bytes(answer: &Answer) -> io::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    // Stored as it is, with a fixed date: the same run gives the same file.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for variable in answer.variables() {
        archive.start_file(format!("{}.npy", variable.name), options)?;
        archive.write_all(&header(answer.is_single(), answer.agents(), variable.width))?;
        for word in variable.words {
            // A word of `f32` was widened and gets its bits back.
            match answer.is_single() {
                true => archive.write_all(&(word as f32).to_le_bytes())?,
                false => archive.write_all(&word.to_le_bytes())?,
            }
        }
    }
    Ok(archive.finish()?.into_inner())
}

/// The head of an array in NumPy's format 1.0. It ends with a line break at a multiple of 64 bytes.
fn header(is_single: bool, rows: usize, columns: usize) -> Vec<u8> {
    const FIXED: usize = 10;
    let word = if is_single { "<f4" } else { "<f8" };
    let mut text = format!("{{'descr': '{word}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let padding = (FIXED + text.len() + 1).next_multiple_of(64) - (FIXED + text.len() + 1);
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let length = u16::try_from(text.len()).expect("a shape of two numbers is short");
    [b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::problem::Shape;
    use std::io::Read;

    /// Two agents with x of one word and y, z of two.
    fn answer() -> Answer {
        let shape = Shape { x: 1, y: 2, x_is_local: false };
        Answer::new(shape, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    }

    #[test]
    fn each_variable_is_an_array_with_a_row_per_agent() {
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes(&answer()).unwrap())).unwrap();
        let mut read = |name: &str| {
            let mut bytes = Vec::new();
            archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
            let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            assert_eq!(data % 64, 0);
            let words = bytes[data..].as_chunks::<4>().0.iter().map(|&word| f32::from_le_bytes(word));
            (String::from_utf8_lossy(&bytes[10..data]).trim_end().to_owned(), words.collect::<Vec<_>>())
        };
        let head = |shape| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        assert_eq!(read("x.npy"), (head("(2, 1)"), vec![1.0, 6.0]));
        assert_eq!(read("y.npy"), (head("(2, 2)"), vec![2.0, 3.0, 7.0, 8.0]));
        assert_eq!(read("z.npy"), (head("(2, 2)"), vec![4.0, 5.0, 9.0, 10.0]));
    }
}
