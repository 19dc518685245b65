//! Search, recall and status of sessions as MCP tools.
