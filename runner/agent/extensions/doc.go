// Package extensions owns a job's outside tools: MCP servers and the job's own tools, from start to
// end, in sandboxes opened by package confine. It fails closed: a missing or different tool ends
// the run before any cost. It does not know the conversation, nor how a change is published.
package extensions
