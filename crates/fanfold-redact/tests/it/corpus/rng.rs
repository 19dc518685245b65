//! Random characters from a seed, and the encodings of secrets.
//!
//! A seed gives the same corpus on every machine: no clock, no system randomness.

/// A deterministic generator (splitmix64), not for cryptography.
pub(super) struct CorpusRng(u64);

impl CorpusRng {
    pub(super) fn new(seed: u64) -> CorpusRng {
        CorpusRng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, not including, `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns true with probability 1/n.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    pub(super) fn chars(&mut self, alphabet: &str, n: usize) -> String {
        let letters = alphabet.as_bytes();
        (0..n).map(|_| letters[self.below(letters.len())] as char).collect()
    }

    pub(super) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    /// Fills the holes of a template: `{hex32}`, `{an20-24}`, `{uuid}`. See `hole`.
    pub(super) fn fill(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, tail) = after.split_once('}').expect("a hole in a template is closed");
            out.push_str(before);
            out.push_str(&self.hole(name));
            rest = tail;
        }
        out + rest
    }

    /// The text for one hole: an alphabet and a length, or a range of lengths.
    fn hole(&mut self, name: &str) -> String {
        if name == "uuid" {
            return self.fill("{hex8}-{hex4}-4{hex3}-a{hex3}-{hex12}");
        }
        let digits_at = name.find(|c: char| c.is_ascii_digit()).expect("a hole has a length");
        let (class, length) = name.split_at(digits_at);
        let (min, max) = length.split_once('-').unwrap_or((length, length));
        let min: usize = min.parse().expect("a length is a number");
        let max: usize = max.parse().expect("a length is a number");
        let n = min + self.below(max - min + 1);
        self.chars(alphabet(class), n)
    }
}

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(super) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The alphabet of a hole.
fn alphabet(class: &str) -> &'static str {
    match class {
        "d" => "0123456789",
        "hex" => "0123456789abcdef",
        "HEX" => "0123456789ABCDEF",
        "up" => UPPER,
        "low" => "abcdefghijklmnopqrstuvwxyz",
        "letter" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "lowd" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "upd" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "an" => ALNUM,
        "word" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_",
        "url" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        "bsf" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "azure" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~.-",
        "bthirtytwo" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "bfiftyeight" => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
        "bech" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        other => panic!("no alphabet is called {other}"),
    }
}

/// Standard base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    let letters = alphabet("bsf").as_bytes();
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let mut bits = 0u32;
        for i in 0..3 {
            bits = bits << 8 | u32::from(group.get(i).copied().unwrap_or(0));
        }
        for i in 0..4 {
            let is_padding = i > group.len();
            let letter = letters[(bits >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if is_padding { '=' } else { letter });
        }
    }
    out
}

/// Base64 for URLs, without padding, as in a JWT.
pub(super) fn base64_url(bytes: &[u8]) -> String {
    base64(bytes).replace('+', "-").replace('/', "_").replace('=', "")
}

/// The CRC-32 at the end of tokens of GitHub, npm and others.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xEDB8_8320 } else { c >> 1 })
    })
}

/// A number in base 62 with `width` digits.
pub(super) fn base62(mut number: u32, width: usize) -> String {
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(number % 62) as usize];
        number /= 62;
    }
    digits.into_iter().map(char::from).collect()
}
