//! Huffman-coded strings (RFC 7541 appendix B).
//!
//! The code is canonical: symbols by length, and by value within a length, have consecutive codes. So the lengths say
//! it all, and the tables are computed from them.

/// Bits of each symbol's code; the last is the end of the string, which never appears in one.
static LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

/// The longest code.
const LONGEST: usize = 30;

/// The shortest code.
const SHORTEST: usize = 5;

/// Bits of the codes that are found at once.
const SHORT: usize = 8;

struct Tables {
    /// Each symbol's code, in its low bits.
    codes: [u32; 257],
    /// Symbols in the order of their codes.
    symbols: [u16; 257],
    /// By length: the first code of the length, at the top of 32 bits.
    first: [u32; LONGEST + 1],
    /// By length: the code behind the last of the length, at the top of 32 bits and a bit more.
    end: [u64; LONGEST + 1],
    /// By length: place of its first symbol in `symbols`.
    offset: [usize; LONGEST + 1],
    /// By the first eight bits: the symbol whose code they begin with and its length, or a length of 0 if the code is longer.
    /// All letters, digits and common signs have short codes.
    short: [(u8, u8); 1 << SHORT],
}

static TABLES: Tables = tables();

/// Code and bits by byte.
static CODES: [(u32, u32); 256] = codes();

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which refuses what is out of range")]
const fn codes() -> [(u32, u32); 256] {
    let (tables, mut codes, mut byte) = (tables(), [(0, 0); 256], 0);
    while byte < codes.len() {
        codes[byte] = (tables.codes[byte], LENGTHS[byte] as u32);
        byte += 1;
    }
    codes
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which refuses what is out of range")]
const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; 257],
        symbols: [0; 257],
        first: [0; LONGEST + 1],
        end: [0; LONGEST + 1],
        offset: [0; LONGEST + 1],
        short: [(0, 0); 1 << SHORT],
    };
    let (mut code, mut place, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        code <<= 1;
        tables.first[length] = code << (32 - length);
        tables.offset[length] = place;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code;
                tables.symbols[place] = symbol as u16;
                let mut rest = 0;
                while length <= SHORT && rest < 1 << (SHORT - length) {
                    tables.short[((code as usize) << (SHORT - length)) + rest] = (symbol as u8, length as u8);
                    rest += 1;
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        tables.end[length] = (code as u64) << (32 - length);
        length += 1;
    }
    tables
}

/// Length of `text` in bytes when coded.
pub(super) fn coded_len(text: &[u8]) -> usize {
    let bits: usize =
        text.iter().map(|byte| CODES.get(usize::from(*byte)).map_or(0, |(_, bits)| *bits as usize)).sum();
    bits.div_ceil(8)
}

/// Bits that are written at once.
const WORD: u32 = 32;

/// Appends `text`, coded.
pub(super) fn encode(buffer: &mut Vec<u8>, text: &[u8]) {
    // Below 32 bits are pending before a symbol, and its code adds at most 30.
    let (mut pending, mut count) = (0_u64, 0_u32);
    // What is written goes through here, and to the buffer a few words at a time.
    let mut words = [0; 32];
    let mut filled = 0;
    for byte in text {
        let (code, length) = CODES.get(usize::from(*byte)).copied().unwrap_or_default();
        pending = (pending << length) | u64::from(code);
        count += length;
        if count >= WORD {
            count -= WORD;
            if let Some(word) = words.get_mut(filled..filled + 4) {
                word.copy_from_slice(&((pending >> count) as u32).to_be_bytes());
            }
            filled += 4;
            if filled == words.len() {
                buffer.extend_from_slice(&words);
                filled = 0;
            }
        }
    }
    buffer.extend_from_slice(words.get(..filled).unwrap_or_default());
    // Padded with the first bits of the end's code, which are ones.
    let padded = (pending << (WORD - count)) as u32 | u32::MAX.checked_shr(count).unwrap_or_default();
    let rest = padded.to_be_bytes();
    buffer.extend_from_slice(rest.get(..count.div_ceil(8) as usize).unwrap_or_default());
}

/// Appends the decoded text; `None` if `coded` is invalid: it contains the end symbol, or its padding is longer than
/// seven bits or has zeros (RFC 7541 section 5.2).
pub(super) fn decode(coded: &[u8], buffer: &mut Vec<u8>) -> Option<()> {
    buffer.reserve(coded.len() * 8 / SHORTEST);
    let mut input = coded;
    // The complement of the bits not yet used, at the top: where there are none it has zeros, which stand for ones.
    let (mut window, mut count) = (0_u64, 0_u32);
    loop {
        if count <= 32 {
            (window, count) = refill(&mut input, window, count);
            // Padding, or nothing: no symbol is so short and all ones.
            if window == 0 && count < 8 {
                return Some(());
            }
        }
        let (symbol, length) = match TABLES.short.get((!window >> (64 - SHORT)) as usize) {
            Some((symbol, length)) if *length > 0 => (*symbol, u32::from(*length)),
            _ => longer((!window >> 32) as u32)?,
        };
        if length > count {
            return None;
        }
        buffer.push(symbol);
        window <<= length;
        count -= length;
    }
}

/// Takes four bytes of `input` to behind the `count` bits of the window, or what is left.
fn refill(input: &mut &[u8], window: u64, count: u32) -> (u64, u32) {
    if let Some((word, rest)) = input.split_first_chunk::<4>() {
        *input = rest;
        return (window | (u64::from(!u32::from_be_bytes(*word)) << (32 - count)), count + 32);
    }
    let (mut window, mut count) = (window, count);
    for byte in *input {
        window |= u64::from(!byte) << (56 - count);
        count += 8;
    }
    *input = &[];
    (window, count)
}

/// The symbol whose code, a longer one, stands at the top of `window`, and the code's length; `None` for the end's.
fn longer(window: u32) -> Option<(u8, u32)> {
    for length in SHORT + 1..=LONGEST {
        let end = *TABLES.end.get(length)?;
        if u64::from(window) < end {
            let first = *TABLES.first.get(length)?;
            let place = TABLES.offset.get(length)? + ((window - first) >> (32 - length)) as usize;
            // What is no byte is the end's symbol.
            return Some((u8::try_from(*TABLES.symbols.get(place)?).ok()?, length as u32));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(coded, &mut text).map(|()| text)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut coded = Vec::new();
        encode(&mut coded, text);
        assert_eq!(coded.len(), coded_len(text));
        coded
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541 appendix C.4 and C.6.
        let examples: [(&[u8], &[u8]); 4] = [
            (b"www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"302", &[0x64, 0x02]),
            (b"private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ];
        for (text, coded) in examples {
            assert_eq!(encoded(text), coded);
            assert_eq!(decoded(coded).as_deref(), Some(text));
        }
    }

    #[test]
    fn the_codes_are_those_of_the_table() {
        // A few of RFC 7541 appendix B, of different lengths.
        for (symbol, code) in
            [(b'0', 0x0), (b' ', 0x14), (b'&', 0xf8), (b'<', 0x7ffc), (0, 0x1ff8), (10, 0x3fff_fffc)]
        {
            assert_eq!(TABLES.codes[usize::from(symbol)], code, "{symbol}");
        }
        assert_eq!(TABLES.codes[256], 0x3fff_ffff);
    }

    #[test]
    fn wrong_padding_is_refused() {
        assert_eq!(decoded(&[]).as_deref(), Some(b"".as_slice()));
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Some(b"0".as_slice()));
        assert_eq!(decoded(&[0b0000_0110]), None, "not all ones");
        assert_eq!(decoded(&[0b0000_0111, 0xff]), None, "more than seven bits");
        assert_eq!(decoded(&[0xff; 4]), None, "the end's symbol");
        assert_eq!(decoded(&[0xff; 5]), None, "and more");
    }

    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), Some(all));
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(text in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decoded(&encoded(&text)), Some(text));
        }

        #[test]
        fn what_decodes_is_the_only_coding(coded in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(text) = decoded(&coded) {
                prop_assert_eq!(encoded(&text), coded);
            }
        }
    }
}
