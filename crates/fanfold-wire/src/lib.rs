//! Provider formats to transcripts and views back to bytes.
