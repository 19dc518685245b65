//! Content encodings: decompression up to a size limit, so that a small body cannot exhaust the memory.

use std::io::{self, BufRead, BufReader, Read, Write};

use bytes::Bytes;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Why a body could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodingError {
    /// The encoding is unknown.
    Unknown,
    /// The data is corrupt.
    Corrupt,
    /// The result exceeds the limit.
    TooLarge,
}

/// Buffer size of the Brotli decoder.
const BROTLI_BUFFER: usize = 16 << 10;

/// The maximum number of encodings of one body.
const MAX_ENCODINGS: usize = 3;
/// The largest window of zstd over HTTP (RFC 9659), as a power of two. It limits the memory of the decoder.
const ZSTD_WINDOW: u32 = 23;

/// Returns whether a body is compressed.
pub(crate) fn is_compressed(headers: &HeaderMap) -> bool {
    encodings(headers).is_none_or(|names| !names.is_empty())
}

/// The size of a body after decompression. The result is not held in memory.
pub(crate) fn decompressed_size(
    headers: &HeaderMap,
    body: &[u8],
    limit: usize,
) -> Result<usize, EncodingError> {
    let names = encodings(headers).ok_or(EncodingError::Unknown)?;
    let mut decompressed = up_to(reader(&names, body, limit)?, limit);
    let n_bytes = io::copy(&mut decompressed, &mut io::sink()).map_err(|_| EncodingError::Corrupt)?;
    usize::try_from(n_bytes).ok().filter(|n_bytes| *n_bytes <= limit).ok_or(EncodingError::TooLarge)
}

/// Decompresses a body; returns it as it is if it is not compressed.
pub(crate) fn decompress(headers: &HeaderMap, body: &Bytes, limit: usize) -> Result<Bytes, EncodingError> {
    let names = encodings(headers).ok_or(EncodingError::Unknown)?;
    if names.is_empty() {
        return Ok(body.clone());
    }
    let mut decompressed = Vec::new();
    up_to(reader(&names, body, limit)?, limit)
        .read_to_end(&mut decompressed)
        .map_err(|_| EncodingError::Corrupt)?;
    if decompressed.len() > limit { Err(EncodingError::TooLarge) } else { Ok(decompressed.into()) }
}

/// The encodings of a body, in the order of their application.
fn encodings(headers: &HeaderMap) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        names.extend(value.to_str().ok()?.split(',').map(|name| name.trim().to_ascii_lowercase()));
    }
    names.retain(|name| !name.is_empty() && name != "identity");
    Some(names)
}

/// A reader that undoes these encodings. No intermediate result may exceed the limit.
fn reader<'a>(names: &[String], body: &'a [u8], limit: usize) -> Result<Box<dyn Read + 'a>, EncodingError> {
    if names.len() > MAX_ENCODINGS {
        return Err(EncodingError::Unknown);
    }
    // The last encoding was applied last.
    names.iter().rev().try_fold(Box::new(body) as Box<dyn Read + 'a>, |from, name| {
        let from = BufReader::new(from);
        let read: Box<dyn Read + 'a> = match name.as_str() {
            "gzip" | "x-gzip" => Box::new(up_to(MultiGzDecoder::new(from), limit)),
            "deflate" => Box::new(up_to(inflate(from)?, limit)),
            "br" => Box::new(up_to(brotli::Decompressor::new(from, BROTLI_BUFFER), limit)),
            "zstd" => {
                let mut decoder = zstd::Decoder::with_buffer(from).map_err(|_| EncodingError::Corrupt)?;
                decoder.window_log_max(ZSTD_WINDOW).map_err(|_| EncodingError::Corrupt)?;
                Box::new(up_to(decoder, limit))
            }
            _ => return Err(EncodingError::Unknown),
        };
        Ok(read)
    })
}

/// `deflate` means zlib, but some clients send raw deflate. Their first bytes differ.
fn inflate<'a>(mut from: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, EncodingError> {
    let begun = from.fill_buf().map_err(|_| EncodingError::Corrupt)?;
    let is_zlib = match begun {
        [first, second, ..] => first & 0x0f == 8 && u16::from_be_bytes([*first, *second]).is_multiple_of(31),
        [first] => first & 0x0f == 8,
        [] => false,
    };
    Ok(if is_zlib { Box::new(ZlibDecoder::new(from)) } else { Box::new(DeflateDecoder::new(from)) })
}

/// Reads at most one byte more than the limit, which shows that the limit is exceeded.
fn up_to<R: Read>(from: R, limit: usize) -> io::Take<R> {
    from.take(limit as u64 + 1)
}

/// A streaming decoder.
pub(crate) struct StreamDecoder {
    decoder: Decoder,
}

/// A decoder per encoding. Each writes to a [`BoundedBuffer`].
enum Decoder {
    Gzip(flate2::write::MultiGzDecoder<BoundedBuffer>),
    Deflate(flate2::write::ZlibDecoder<BoundedBuffer>),
    Zstd(zstd::stream::write::Decoder<'static, BoundedBuffer>),
    Brotli(Box<brotli::DecompressorWriter<BoundedBuffer>>),
}

/// Decompressed bytes that were not taken yet, up to a limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other("the decompressed response is too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StreamDecoder {
    /// A decoder for a response. Returns `None` unless it has exactly one known encoding.
    pub(crate) fn from_headers(headers: &HeaderMap, limit: usize) -> Option<StreamDecoder> {
        let kept = BoundedBuffer { bytes: Vec::new(), limit };
        let names = encodings(headers)?;
        let [name] = names.as_slice() else { return None };
        let decoder = match name.as_str() {
            "gzip" | "x-gzip" => Decoder::Gzip(flate2::write::MultiGzDecoder::new(kept)),
            "deflate" => Decoder::Deflate(flate2::write::ZlibDecoder::new(kept)),
            "zstd" => Decoder::Zstd(zstd::stream::write::Decoder::new(kept).ok()?),
            "br" => Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(kept, BROTLI_BUFFER))),
            _ => return None,
        };
        Some(StreamDecoder { decoder })
    }

    /// Decompresses the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (written, kept) = match &mut self.decoder {
            Decoder::Gzip(decoder) => {
                (decoder.write_all(bytes).and_then(|()| decoder.flush()), decoder.get_mut())
            }
            Decoder::Deflate(decoder) => {
                (decoder.write_all(bytes).and_then(|()| decoder.flush()), decoder.get_mut())
            }
            Decoder::Zstd(decoder) => {
                (decoder.write_all(bytes).and_then(|()| decoder.flush()), decoder.get_mut())
            }
            Decoder::Brotli(decoder) => {
                (decoder.write_all(bytes).and_then(|()| decoder.flush()), decoder.get_mut())
            }
        };
        written.map(|()| std::mem::take(&mut kept.bytes))
    }

    /// The remaining bytes; an error if the stream is truncated.
    pub(crate) fn end(mut self) -> io::Result<Vec<u8>> {
        let kept = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.try_finish().map(|()| decoder.get_mut())?,
            Decoder::Deflate(decoder) => decoder.try_finish().map(|()| decoder.get_mut())?,
            Decoder::Brotli(decoder) => decoder.close().map(|()| decoder.get_mut())?,
            Decoder::Zstd(decoder) => decoder.get_mut(),
        };
        Ok(std::mem::take(&mut kept.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(name: &str, body: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::default();
        match name {
            "gzip" => {
                let mut gz = flate2::write::GzEncoder::new(Vec::new(), level);
                gz.write_all(body).unwrap();
                gz.finish().unwrap()
            }
            "deflate" => {
                let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
                zlib.write_all(body).unwrap();
                zlib.finish().unwrap()
            }
            "zstd" => zstd::encode_all(body, 3).unwrap(),
            "br" => {
                let mut brotli = brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER, 5, 22);
                brotli.write_all(body).unwrap();
                brotli.into_inner()
            }
            _ => body.to_vec(),
        }
    }

    fn headers(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, name.parse().unwrap())])
    }

    fn decompressed(name: &str, body: Vec<u8>, limit: usize) -> Result<Bytes, EncodingError> {
        decompress(&headers(name), &Bytes::from(body), limit)
    }

    const ENCODINGS: [&str; 4] = ["gzip", "deflate", "zstd", "br"];

    #[test]
    fn round_trips_every_encoding() {
        let body = br#"{"messages":[]}"#.repeat(100);
        for name in ENCODINGS.into_iter().chain(["identity"]) {
            assert_eq!(decompressed(name, compressed(name, &body), 1 << 20).unwrap(), body, "{name}");
        }
        let twice = compressed("br", &compressed("gzip", &body));
        assert_eq!(decompressed("gzip, br", twice, 1 << 20).unwrap(), body);
        assert_eq!(decompressed("compress", b"x".to_vec(), 9), Err(EncodingError::Unknown));
        assert_eq!(decompressed("gzip, gzip, gzip, gzip", b"x".to_vec(), 9), Err(EncodingError::Unknown));
        let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        bare.write_all(&body).unwrap();
        assert_eq!(decompressed("deflate", bare.finish().unwrap(), 1 << 20).unwrap(), body);
        assert!(is_compressed(&headers("br")) && !is_compressed(&headers("identity")));
    }

    #[test]
    fn a_decompression_bomb_stops_at_the_limit() {
        let zeros = vec![0u8; 8 << 20];
        for name in ENCODINGS {
            let bomb = compressed(name, &zeros);
            assert!(bomb.len() < 64 << 10);
            assert_eq!(decompressed(name, bomb.clone(), 1 << 20), Err(EncodingError::TooLarge), "{name}");
            assert_eq!(
                decompressed_size(&headers(name), &bomb, 1 << 20),
                Err(EncodingError::TooLarge),
                "{name}"
            );
            assert_eq!(decompressed_size(&headers(name), &bomb, 8 << 20), Ok(8 << 20), "{name}");
            assert_eq!(
                decompressed(name, b"not packed at all".to_vec(), 1 << 20),
                Err(EncodingError::Corrupt),
                "{name}"
            );
            let mut decoder = StreamDecoder::from_headers(&headers(name), 1 << 20).unwrap();
            assert!(decoder.feed(&bomb).is_err(), "{name}");
        }
    }

    #[test]
    fn refuses_zstd_windows_that_need_too_much_memory() {
        let compressed = |window: u32| {
            let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
            zstd.window_log(window).unwrap();
            zstd.write_all(b"{}").unwrap();
            zstd.finish().unwrap()
        };
        assert_eq!(decompressed("zstd", compressed(ZSTD_WINDOW), 9).as_deref(), Ok(&b"{}"[..]));
        assert_eq!(decompressed("zstd", compressed(ZSTD_WINDOW + 1), 9), Err(EncodingError::Corrupt));
    }

    #[test]
    fn decompresses_a_response_in_chunks() {
        let body: Vec<u8> = (0..200).flat_map(|n| format!("data: piece {n}\n\n").into_bytes()).collect();
        for name in ENCODINGS {
            for size in [1, 7, 1000] {
                let mut decoder = StreamDecoder::from_headers(&headers(name), 1 << 20).unwrap();
                let mut whole = Vec::new();
                for chunk in compressed(name, &body).chunks(size) {
                    whole.extend(decoder.feed(chunk).unwrap());
                }
                whole.extend(decoder.end().unwrap());
                assert_eq!(whole, body, "{name} in pieces of {size}");
            }
        }
        assert!(StreamDecoder::from_headers(&headers("gzip, br"), 9).is_none());
        assert!(StreamDecoder::from_headers(&HeaderMap::new(), 9).is_none());
    }
}
