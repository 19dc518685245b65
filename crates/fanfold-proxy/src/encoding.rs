//! Packed request bodies: unpacked to be read, up to a limit, so that a small body can't become a huge one.

use std::io::Read;

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

/// A body as it is to be read: itself, if it is not packed.
pub(crate) fn unpack(headers: &HeaderMap, body: &Bytes, limit: usize) -> Result<Bytes, Packed> {
    let mut names = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        let value = value.to_str().map_err(|_| Packed::Unknown)?;
        names.extend(value.split(',').map(|name| name.trim().to_ascii_lowercase()));
    }
    // The last one named was put on last.
    names.iter().rev().try_fold(body.clone(), |body, name| unpack_one(name, &body, limit))
}

fn unpack_one(name: &str, body: &Bytes, limit: usize) -> Result<Bytes, Packed> {
    match name {
        "" | "identity" => Ok(body.clone()),
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(&body[..]), limit),
        "zstd" => read(zstd::Decoder::new(&body[..]).map_err(|_| Packed::Broken)?, limit),
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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
            _ => body.to_vec(),
        }
    }

    fn unpacked(name: &str, body: Vec<u8>, limit: usize) -> Result<Bytes, Packed> {
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, name.parse().unwrap())]);
        unpack(&headers, &Bytes::from(body), limit)
    }

    #[test]
    fn every_known_way_reads_back() {
        let body = br#"{"messages":[]}"#.repeat(100);
        for name in ["gzip", "deflate", "zstd", "identity"] {
            assert_eq!(unpacked(name, packed(name, &body), 1 << 20).unwrap(), body, "{name}");
        }
        let twice = packed("zstd", &packed("gzip", &body));
        assert_eq!(unpacked("gzip, zstd", twice, 1 << 20).unwrap(), body);
        assert_eq!(unpacked("br", b"x".to_vec(), 9), Err(Packed::Unknown));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = vec![0u8; 8 << 20];
        for name in ["gzip", "deflate", "zstd"] {
            let bomb = packed(name, &zeros);
            assert!(bomb.len() < 64 << 10);
            assert_eq!(unpacked(name, bomb, 1 << 20), Err(Packed::TooLarge), "{name}");
            assert_eq!(unpacked(name, b"not packed at all".to_vec(), 1 << 20), Err(Packed::Broken), "{name}");
        }
    }
}
