//! CIFAR-10 as PNG batches: each row of a batch is one picture, its 1,024 pixels in reading order.

use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;

use super::error::{in_file, io_error};
use super::{Dataset, Images, Inputs, LabelledSamples, Normalisation};

const SIDE: usize = 32;
const PIXELS: usize = SIDE * SIDE;
const CHANNELS: usize = 3;
const CLASSES: usize = 10;

/// Mean and standard deviation of the training pixels, from 0 to 1.
const MEAN: [f32; CHANNELS] = [0.491_400, 0.482_158, 0.446_531];
const DEVIATION: [f32; CHANNELS] = [0.247_032, 0.243_485, 0.261_588];

/// Reads the batches and labels of a folder.
pub(super) fn read_folder(folder: &Path) -> Result<Dataset, Diagnostic> {
    let part = |batches: &[&str], labels: &str| -> Result<LabelledSamples, Diagnostic> {
        let mut pixels = Vec::new();
        for batch in batches {
            let path = folder.join(batch);
            let file = std::fs::File::open(&path).map_err(io_error(&path))?;
            append_batch(BufReader::new(file), &mut pixels).map_err(in_file(&path))?;
        }
        let path = folder.join(labels);
        let bytes = std::fs::read(&path).map_err(io_error(&path))?;
        let labels = serde_json::from_slice(&bytes).map_err(in_file(&path))?;
        let normalisation = Normalisation::new(MEAN.to_vec(), DEVIATION.to_vec());
        Ok(LabelledSamples {
            inputs: Inputs::Images(Images { shape: [CHANNELS, SIDE, SIDE], pixels, normalisation }),
            labels,
        })
    };
    let train = part(
        &["data_batch_1.png", "data_batch_2.png", "data_batch_3.png", "data_batch_4.png", "data_batch_5.png"],
        "train_labels.json",
    )?;
    let test = part(&["test_batch.png"], "test_labels.json")?;
    Dataset { classes: CLASSES, train, test }.checked().map_err(in_file(folder))
}

/// Decodes a batch row by row, from pixels of three colours to three planes.
fn append_batch(stream: impl BufRead + Seek, pixels: &mut Vec<u8>) -> Result<(), String> {
    let mut reader = png::Decoder::new(stream).read_info().map_err(|error| error.to_string())?;
    let info = reader.info();
    if info.width as usize != PIXELS
        || reader.output_color_type() != (png::ColorType::Rgb, png::BitDepth::Eight)
        || info.interlaced
    {
        return Err(format!(
            "a picture {} wide of type {:?}; {PIXELS} pixels of 8-bit RGB a row are needed",
            info.width,
            reader.output_color_type()
        ));
    }
    while let Some(row) = reader.next_row().map_err(|error| error.to_string())? {
        for channel in 0..CHANNELS {
            pixels.extend(row.data().iter().skip(channel).step_by(CHANNELS));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn encode(width: u32, rows: u32, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, rows);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        file
    }

    #[test]
    fn rows_become_planes() {
        let data: Vec<u8> = (0..2 * PIXELS).flat_map(|pixel| [u8::from(pixel >= PIXELS), 7, 9]).collect();
        let mut pixels = Vec::new();
        append_batch(Cursor::new(encode(1024, 2, &data)), &mut pixels).unwrap();
        assert_eq!(pixels.len(), 2 * CHANNELS * PIXELS);
        assert!(pixels[..PIXELS].iter().all(|pixel| *pixel == 0));
        assert!(pixels[PIXELS..2 * PIXELS].iter().all(|pixel| *pixel == 7));
        assert!(pixels[3 * PIXELS..4 * PIXELS].iter().all(|pixel| *pixel == 1));
        assert!(pixels[5 * PIXELS..].iter().all(|pixel| *pixel == 9));
    }

    #[test]
    fn other_pictures_are_refused() {
        let message = append_batch(Cursor::new(encode(2, 1, &[0; 6])), &mut Vec::new()).unwrap_err();
        assert!(message.contains("2 wide"), "{message}");
    }

    proptest! {
        #[test]
        fn damaged_batches_never_panic(position in 0_usize..3000, byte in any::<u8>(), cut in 0_usize..3000) {
            let mut file = encode(1024, 1, &[5; 3072]);
            let length = file.len();
            file[position % length] = byte;
            file.truncate(cut % (length + 1));
            let _ = append_batch(Cursor::new(file), &mut Vec::new());
        }
    }
}
