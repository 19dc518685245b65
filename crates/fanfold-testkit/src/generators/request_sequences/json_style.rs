//! Styles of JSON: compact, indented, or ASCII with spaces.

use std::io;

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

#[derive(Debug, Clone, Copy)]
pub(super) enum JsonStyle {
    Compact,
    Indented,
    Ascii,
}

impl JsonStyle {
    pub(super) fn from_number(number: usize) -> JsonStyle {
        [JsonStyle::Compact, JsonStyle::Indented, JsonStyle::Ascii][number % 3]
    }

    pub(super) fn write(self, value: &Value) -> String {
        let mut bytes = Vec::new();
        let result = match self {
            JsonStyle::Compact => value.serialize(&mut Serializer::new(&mut bytes)),
            JsonStyle::Indented => value
                .serialize(&mut Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "))),
            JsonStyle::Ascii => value.serialize(&mut Serializer::with_formatter(&mut bytes, Ascii)),
        };
        result.expect("a value can be serialized");
        String::from_utf8(bytes).expect("JSON is text")
    }
}

/// The default style of Python's `json` module.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for c in fragment.chars() {
            if c.is_ascii() {
                writer.write_all(&[c as u8])?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(writer, escape)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        writer.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        writer.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
