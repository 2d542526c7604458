//! Bytes of a wanted length that are what their name says.

use posthaste_units::Rng;

/// Characters that mean nothing in a comment of HTML, CSS or a script, nor in a text of JSON.
const HARMLESS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.";

/// A BMP file's headers before palette and pixels.
const BMP_HEADERS: usize = 54;

/// Bytes of a palette of 256 colours.
const PALETTE: usize = 256 * 4;

/// Width over height of pictures.
const ASPECT: f64 = 16.0 / 9.0;

/// Fills files with what does not compress; the same for the same file.
pub(super) struct Filler {
    rng: Rng,
}

impl Filler {
    pub(super) fn new(file: &str) -> Self {
        let mut seed = [0; 32];
        for (index, byte) in file.bytes().enumerate() {
            seed[index % 32] ^= byte.rotate_left((index / 32) as u32);
        }
        Self { rng: Rng::from_seed(seed) }
    }

    /// Any bytes.
    pub(super) fn noise(mut self, bytes: usize) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        self.rng.fill(&mut noise);
        noise
    }

    fn letters(self, count: usize) -> String {
        self.noise(count).into_iter().map(|byte| char::from(HARMLESS[usize::from(byte) % 64])).collect()
    }

    /// `text` with letters between `open` and `close` behind it. Text that is too long stays as it is, and the test
    /// of the pages sees it.
    fn padded(self, text: &str, (open, close): (&str, &str), bytes: usize) -> Vec<u8> {
        let missing = bytes.saturating_sub(text.len() + open.len() + close.len());
        format!("{text}{open}{}{close}", self.letters(missing)).into_bytes()
    }

    /// A document.
    pub(super) fn html(self, text: &str, bytes: usize) -> Vec<u8> {
        self.padded(text, ("<!--", "-->"), bytes)
    }

    /// A style sheet or a script.
    pub(super) fn commented(self, text: &str, bytes: usize) -> Vec<u8> {
        self.padded(text, ("/*", "*/"), bytes)
    }

    /// An object with `members`, such as `"a":1`.
    pub(super) fn json(self, members: &str, bytes: usize) -> Vec<u8> {
        self.padded(&format!("{{{members}"), (",\"text\":\"", "\"}"), bytes)
    }

    /// A picture (BMP: it needs no codec here, and browsers know it from its first bytes under any media type): grey
    /// noise, so that it is worth as much as a photograph to who judges pictures by their bits a pixel.
    pub(super) fn image(self, bytes: usize) -> Vec<u8> {
        let is_grey = bytes > 4 * PALETTE;
        let (per_pixel, palette) = if is_grey { (1, PALETTE) } else { (3, 0) };
        let room = bytes.saturating_sub(BMP_HEADERS + palette);
        let (width, height) = dimensions(room, per_pixel);
        let mut file = Vec::with_capacity(bytes);
        file.extend(b"BM");
        file.extend((bytes as u32).to_le_bytes());
        file.extend([0; 4]);
        file.extend(((BMP_HEADERS + palette) as u32).to_le_bytes());
        file.extend(40_u32.to_le_bytes());
        file.extend(width.to_le_bytes());
        file.extend(height.to_le_bytes());
        file.extend(1_u16.to_le_bytes());
        file.extend((8 * per_pixel as u16).to_le_bytes());
        // Not compressed; the length of the pixels and the resolution may be left out.
        file.extend([0; 16]);
        file.extend((if is_grey { 256_u32 } else { 0 }).to_le_bytes());
        file.extend([0; 4]);
        if is_grey {
            file.extend((0..=255_u8).flat_map(|shade| [shade, shade, shade, 0]));
        }
        file.extend(self.noise(room));
        file
    }
}

/// Width and height of the largest picture, roughly, whose rows fit into `room`.
fn dimensions(room: usize, per_pixel: usize) -> (u32, u32) {
    let pixels = (room / per_pixel) as f64;
    // Rows have a multiple of four bytes; with a multiple of four pixels they have that anyway.
    let width = ((pixels * ASPECT).sqrt() as usize / 4 * 4).max(4);
    (width as u32, (room / (width * per_pixel)).max(1) as u32)
}
