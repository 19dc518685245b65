//! Packed bodies: unpacked to be read, up to a limit, so that a small body can't become a huge one.

use std::io::{self, BufRead, BufReader, Read, Write};

use bytes::Bytes;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Why a body was not unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packed {
    /// In a way that is not known here.
    Unknown,
    /// It is broken.
    Broken,
    /// It becomes larger than the limit.
    TooLarge,
}

/// Brotli is unpacked in pieces of this size.
const PIECE: usize = 16 << 10;

/// Nobody packs a body more often than this.
const MOST_WAYS: usize = 3;
/// The largest window that zstd may use over HTTP, as a power of two: it is held in memory.
const ZSTD_WINDOW: u32 = 23;

/// Whether a body is packed.
pub(crate) fn is_packed(headers: &HeaderMap) -> bool {
    names(headers).is_none_or(|names| !names.is_empty())
}

/// How large a body is when it is unpacked. That costs time and no memory.
pub(crate) fn measure(headers: &HeaderMap, body: &[u8], limit: usize) -> Result<usize, Packed> {
    let names = names(headers).ok_or(Packed::Unknown)?;
    let mut unpacked = up_to(reader(&names, body, limit)?, limit);
    let n_bytes = io::copy(&mut unpacked, &mut io::sink()).map_err(|_| Packed::Broken)?;
    usize::try_from(n_bytes).ok().filter(|n_bytes| *n_bytes <= limit).ok_or(Packed::TooLarge)
}

/// A body as it is to be read: itself, if it is not packed.
pub(crate) fn unpack(headers: &HeaderMap, body: &Bytes, limit: usize) -> Result<Bytes, Packed> {
    let names = names(headers).ok_or(Packed::Unknown)?;
    if names.is_empty() {
        return Ok(body.clone());
    }
    let mut unpacked = Vec::new();
    up_to(reader(&names, body, limit)?, limit).read_to_end(&mut unpacked).map_err(|_| Packed::Broken)?;
    if unpacked.len() > limit { Err(Packed::TooLarge) } else { Ok(unpacked.into()) }
}

/// The ways in which a body was packed, in their order.
fn names(headers: &HeaderMap) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        names.extend(value.to_str().ok()?.split(',').map(|name| name.trim().to_ascii_lowercase()));
    }
    names.retain(|name| !name.is_empty() && name != "identity");
    Some(names)
}

/// Reads a body that was packed in these ways, one after another. No way may make it larger than the limit.
fn reader<'a>(names: &[String], body: &'a [u8], limit: usize) -> Result<Box<dyn Read + 'a>, Packed> {
    if names.len() > MOST_WAYS {
        return Err(Packed::Unknown);
    }
    // The last one named was put on last.
    names.iter().rev().try_fold(Box::new(body) as Box<dyn Read + 'a>, |from, name| {
        let from = BufReader::new(from);
        let read: Box<dyn Read + 'a> = match name.as_str() {
            "gzip" | "x-gzip" => Box::new(up_to(MultiGzDecoder::new(from), limit)),
            "deflate" => Box::new(up_to(inflate(from)?, limit)),
            "br" => Box::new(up_to(brotli::Decompressor::new(from, PIECE), limit)),
            "zstd" => {
                let mut decoder = zstd::Decoder::with_buffer(from).map_err(|_| Packed::Broken)?;
                decoder.window_log_max(ZSTD_WINDOW).map_err(|_| Packed::Broken)?;
                Box::new(up_to(decoder, limit))
            }
            _ => return Err(Packed::Unknown),
        };
        Ok(read)
    })
}

/// The standard means zlib, and some send it bare: no bare beginning looks like the other.
fn inflate<'a>(mut from: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, Packed> {
    let begun = from.fill_buf().map_err(|_| Packed::Broken)?;
    let is_zlib = match begun {
        [first, second, ..] => first & 0x0f == 8 && u16::from_be_bytes([*first, *second]).is_multiple_of(31),
        [first] => first & 0x0f == 8,
        [] => false,
    };
    Ok(if is_zlib { Box::new(ZlibDecoder::new(from)) } else { Box::new(DeflateDecoder::new(from)) })
}

/// One byte more than the limit tells that there is more.
fn up_to<R: Read>(from: R, limit: usize) -> io::Take<R> {
    from.take(limit as u64 + 1)
}

/// An answer that is unpacked as it comes.
pub(crate) struct Unpacking {
    way: Way,
}

/// How it was packed. Each writes what it makes of the bytes it is given.
enum Way {
    Gzip(flate2::write::MultiGzDecoder<Kept>),
    Deflate(flate2::write::ZlibDecoder<Kept>),
    Zstd(zstd::stream::write::Decoder<'static, Kept>),
    Brotli(Box<brotli::DecompressorWriter<Kept>>),
}

/// What was unpacked and not yet taken, up to a limit.
struct Kept {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other("an answer becomes too large when it is unpacked"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Unpacking {
    /// For an answer with these headers; none where it is not packed, or not in one way that is known here.
    pub(crate) fn of(headers: &HeaderMap, limit: usize) -> Option<Unpacking> {
        let kept = Kept { bytes: Vec::new(), limit };
        let names = names(headers)?;
        let [name] = names.as_slice() else { return None };
        let way = match name.as_str() {
            "gzip" | "x-gzip" => Way::Gzip(flate2::write::MultiGzDecoder::new(kept)),
            "deflate" => Way::Deflate(flate2::write::ZlibDecoder::new(kept)),
            "zstd" => Way::Zstd(zstd::stream::write::Decoder::new(kept).ok()?),
            "br" => Way::Brotli(Box::new(brotli::DecompressorWriter::new(kept, PIECE))),
            _ => return None,
        };
        Some(Unpacking { way })
    }

    /// What some bytes of the answer are.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (written, kept) = match &mut self.way {
            Way::Gzip(way) => (way.write_all(bytes).and_then(|()| way.flush()), way.get_mut()),
            Way::Deflate(way) => (way.write_all(bytes).and_then(|()| way.flush()), way.get_mut()),
            Way::Zstd(way) => (way.write_all(bytes).and_then(|()| way.flush()), way.get_mut()),
            Way::Brotli(way) => (way.write_all(bytes).and_then(|()| way.flush()), way.get_mut()),
        };
        written.map(|()| std::mem::take(&mut kept.bytes))
    }

    /// What is left at the end; an error if that is not the end.
    pub(crate) fn end(mut self) -> io::Result<Vec<u8>> {
        let kept = match &mut self.way {
            Way::Gzip(way) => way.try_finish().map(|()| way.get_mut())?,
            Way::Deflate(way) => way.try_finish().map(|()| way.get_mut())?,
            Way::Brotli(way) => way.close().map(|()| way.get_mut())?,
            Way::Zstd(way) => way.get_mut(),
        };
        Ok(std::mem::take(&mut kept.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(name: &str, body: &[u8]) -> Vec<u8> {
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
                let mut brotli = brotli::CompressorWriter::new(Vec::new(), PIECE, 5, 22);
                brotli.write_all(body).unwrap();
                brotli.into_inner()
            }
            _ => body.to_vec(),
        }
    }

    fn headers(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, name.parse().unwrap())])
    }

    fn unpacked(name: &str, body: Vec<u8>, limit: usize) -> Result<Bytes, Packed> {
        unpack(&headers(name), &Bytes::from(body), limit)
    }

    const WAYS: [&str; 4] = ["gzip", "deflate", "zstd", "br"];

    #[test]
    fn every_known_way_reads_back() {
        let body = br#"{"messages":[]}"#.repeat(100);
        for name in WAYS.into_iter().chain(["identity"]) {
            assert_eq!(unpacked(name, packed(name, &body), 1 << 20).unwrap(), body, "{name}");
        }
        let twice = packed("br", &packed("gzip", &body));
        assert_eq!(unpacked("gzip, br", twice, 1 << 20).unwrap(), body);
        assert_eq!(unpacked("compress", b"x".to_vec(), 9), Err(Packed::Unknown));
        assert_eq!(unpacked("gzip, gzip, gzip, gzip", b"x".to_vec(), 9), Err(Packed::Unknown));
        let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        bare.write_all(&body).unwrap();
        assert_eq!(unpacked("deflate", bare.finish().unwrap(), 1 << 20).unwrap(), body);
        assert!(is_packed(&headers("br")) && !is_packed(&headers("identity")));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = vec![0u8; 8 << 20];
        for name in WAYS {
            let bomb = packed(name, &zeros);
            assert!(bomb.len() < 64 << 10);
            assert_eq!(unpacked(name, bomb.clone(), 1 << 20), Err(Packed::TooLarge), "{name}");
            assert_eq!(measure(&headers(name), &bomb, 1 << 20), Err(Packed::TooLarge), "{name}");
            assert_eq!(measure(&headers(name), &bomb, 8 << 20), Ok(8 << 20), "{name}");
            assert_eq!(unpacked(name, b"not packed at all".to_vec(), 1 << 20), Err(Packed::Broken), "{name}");
            let mut unpacking = Unpacking::of(&headers(name), 1 << 20).unwrap();
            assert!(unpacking.feed(&bomb).is_err(), "{name}");
        }
    }

    #[test]
    fn a_window_that_takes_too_much_memory_is_refused() {
        let packed = |window: u32| {
            let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
            zstd.window_log(window).unwrap();
            zstd.write_all(b"{}").unwrap();
            zstd.finish().unwrap()
        };
        assert_eq!(unpacked("zstd", packed(ZSTD_WINDOW), 9).as_deref(), Ok(&b"{}"[..]));
        assert_eq!(unpacked("zstd", packed(ZSTD_WINDOW + 1), 9), Err(Packed::Broken));
    }

    #[test]
    fn an_answer_is_unpacked_as_it_comes() {
        let body: Vec<u8> = (0..200).flat_map(|n| format!("data: piece {n}\n\n").into_bytes()).collect();
        for name in WAYS {
            for size in [1, 7, 1000] {
                let mut unpacking = Unpacking::of(&headers(name), 1 << 20).unwrap();
                let mut whole = Vec::new();
                for chunk in packed(name, &body).chunks(size) {
                    whole.extend(unpacking.feed(chunk).unwrap());
                }
                whole.extend(unpacking.end().unwrap());
                assert_eq!(whole, body, "{name} in pieces of {size}");
            }
        }
        assert!(Unpacking::of(&headers("gzip, br"), 9).is_none());
        assert!(Unpacking::of(&HeaderMap::new(), 9).is_none());
    }
}
