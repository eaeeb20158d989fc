//! Images of firmware that are changed at one address.

use super::*;
use object::{Object, ObjectSegment, ObjectSymbol};

/// An image with its bytes by their addresses.
pub(super) struct PatchedImage {
    bytes: Vec<u8>,
    /// Address, length and offset in the file of each segment.
    parts: Vec<(u64, u64, u64)>,
}

impl PatchedImage {
    pub(super) fn read(image: &Path) -> Self {
        let bytes = fs::read(image).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let part = |part: object::Segment| (part.address(), part.file_range().1, part.file_range().0);
        let parts = file.segments().map(part).collect();
        Self { bytes, parts }
    }

    /// The first address of something whose name contains `name`. Thumb code has odd ones.
    pub(super) fn address(&self, name: &str) -> u64 {
        let file = object::File::parse(&*self.bytes).unwrap();
        let mut symbols = file.symbols();
        symbols.find(|symbol| symbol.name().unwrap().contains(name)).unwrap().address() & !1
    }

    /// The address of a function of the firmware's agent.
    pub(super) fn agent_function(&self, name: &str) -> u64 {
        self.address(&format!("SealedAgent$LT$P$GT${}{name}", name.len()))
    }

    /// Writes the image to `path` with other instructions at `address`.
    pub(super) fn write_patched(&self, address: u64, instructions: [u8; 4], path: &Path) -> PathBuf {
        let (at, mut bytes) = (self.offset(address).unwrap(), self.bytes.clone());
        bytes[at..at + 4].copy_from_slice(&instructions);
        fs::write(path, bytes).unwrap();
        path.to_owned()
    }

    fn offset(&self, address: u64) -> Option<usize> {
        let (at, _, from) =
            self.parts.iter().find(|(at, length, _)| (*at..at + length).contains(&address))?;
        Some((from + address - at) as usize)
    }

    fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.bytes.get(self.offset(address)?..)?.get(..N)?.try_into().ok()
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.bytes(address).map(|word| u32::from_le_bytes(word).into())
    }

    /// The panics for an index that is too large: where the code begins that calls `handler`, and file and line that it names.
    pub(super) fn panics(&self, handler: u64) -> impl Iterator<Item = (u64, String)> {
        let addresses = self.parts.iter().flat_map(|(at, length, _)| (*at..at + length).step_by(2));
        let calls = addresses.filter(move |at| self.bytes(*at) == Some(call(*at, handler)));
        calls.filter_map(|call| {
            // The third argument is the place in the sources, and is loaded within a few instructions before the call.
            let load =
                (1..=4).map(|back| call - 2 * back).find(|at| self.bytes::<2>(*at).unwrap()[1] == 0x4A)?;
            let distance = 4 * u64::from(self.bytes::<1>(load)?[0]);
            // Pointer to the file's name, its length, line and column.
            let place = self.word(((load + 4) & !3) + distance)?;
            let [name, length, line] = [0, 4, 8].map(|field| self.word(place + field));
            let from = self.offset(name?)?;
            let name = std::str::from_utf8(self.bytes.get(from..from + length? as usize)?).ok()?;
            Some((load, format!("{name}:{}:", line?)))
        })
    }
}
