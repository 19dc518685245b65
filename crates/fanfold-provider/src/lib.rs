//! HTTP to a model provider: send, stream, classify errors.
