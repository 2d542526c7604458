//! One compressor, whichever coding it is for.

use std::io::{self, Write};

use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::write::GzEncoder;
use posthaste_service::Coding;
use zstd::zstd_safe::CParameter;

/// Of 1 to 9.
const GZIP_LEVEL: u32 = 6;

/// Of 0 to 11. From 5 on memory and time grow by half for two hundredths of the size.
const BROTLI_QUALITY: u32 = 4;

/// Bits of Brotli's window: 128 KiB, as much as pages repeat.
const BROTLI_WINDOW: u32 = 17;

/// Bytes that Brotli's writer keeps of its output at a time.
const BROTLI_BUFFER: usize = 4096;

/// Of 1 to 22.
const ZSTD_LEVEL: i32 = 6;

/// Bits of the window: 128 KiB.
const ZSTD_WINDOW: u32 = 17;

/// Bits of the tables. At this level zstd takes 3 MiB without bounds on these, and 0.7 MiB with them, for content that is
/// two hundredths of a percent longer.
const ZSTD_TABLES: u32 = 16;

/// Takes bytes and gives compressed ones; memory is 0.3 MiB (gzip), 0.7 MiB (zstd) or 1.6 MiB (Brotli).
pub(crate) enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL))),
            Coding::Brotli => {
                let writer = CompressorWriter::new(Vec::new(), BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
                Self::Brotli(Box::new(writer))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW)?;
                encoder.set_parameter(CParameter::HashLog(ZSTD_TABLES))?;
                encoder.set_parameter(CParameter::ChainLog(ZSTD_TABLES))?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Takes all of `piece`.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.writer().write_all(piece)
    }

    /// Lets out all that it has taken.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }

    /// Bytes that it has given and nobody has fetched.
    pub(crate) fn ready(&self) -> usize {
        match self {
            Self::Gzip(encoder) => encoder.get_ref().len(),
            Self::Brotli(encoder) => encoder.get_ref().len(),
            Self::Zstd(encoder) => encoder.get_ref().len(),
        }
    }

    /// Fetches what it has given.
    pub(crate) fn take(&mut self) -> Bytes {
        let output = match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        };
        std::mem::take(output).into()
    }

    /// Ends the content, and gives what is left of it.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        let rest = match self {
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Brotli(encoder) => encoder.into_inner(),
            Self::Zstd(encoder) => encoder.finish()?,
        };
        Ok(rest.into())
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Gzip(encoder) => encoder,
            Self::Brotli(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
        }
    }
}
