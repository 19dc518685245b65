//! Packed bodies: unpacked to be read, up to a limit, so that a small body can't become a huge one.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
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

/// A body as it is to be read: itself, if it is not packed.
pub(crate) fn unpack(headers: &HeaderMap, body: &Bytes, limit: usize) -> Result<Bytes, Packed> {
    // The last one named was put on last.
    let names = names(headers).ok_or(Packed::Unknown)?;
    names.iter().rev().try_fold(body.clone(), |body, name| unpack_one(name, &body, limit))
}

/// The ways in which a body was packed, in their order.
fn names(headers: &HeaderMap) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        names.extend(value.to_str().ok()?.split(',').map(|name| name.trim().to_ascii_lowercase()));
    }
    Some(names)
}

fn unpack_one(name: &str, body: &Bytes, limit: usize) -> Result<Bytes, Packed> {
    match name {
        "" | "identity" => Ok(body.clone()),
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(&body[..]), limit),
        "zstd" => read(zstd::Decoder::new(&body[..]).map_err(|_| Packed::Broken)?, limit),
        "br" => read(brotli::Decompressor::new(&body[..], PIECE), limit),
        // The standard means zlib, and some send it bare.
        "deflate" => match read(ZlibDecoder::new(&body[..]), limit) {
            Err(Packed::Broken) => read(DeflateDecoder::new(&body[..]), limit),
            read => read,
        },
        _ => Err(Packed::Unknown),
    }
}

fn read(from: impl Read, limit: usize) -> Result<Bytes, Packed> {
    let mut unpacked = Vec::new();
    from.take(limit as u64 + 1).read_to_end(&mut unpacked).map_err(|_| Packed::Broken)?;
    if unpacked.len() > limit { Err(Packed::TooLarge) } else { Ok(unpacked.into()) }
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
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = vec![0u8; 8 << 20];
        for name in WAYS {
            let bomb = packed(name, &zeros);
            assert!(bomb.len() < 64 << 10);
            assert_eq!(unpacked(name, bomb.clone(), 1 << 20), Err(Packed::TooLarge), "{name}");
            assert_eq!(unpacked(name, b"not packed at all".to_vec(), 1 << 20), Err(Packed::Broken), "{name}");
            let mut unpacking = Unpacking::of(&headers(name), 1 << 20).unwrap();
            assert!(unpacking.feed(&bomb).is_err(), "{name}");
        }
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
