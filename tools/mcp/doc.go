// Package mcp is the client of the Model Context Protocol: sessions, revisions, tools for models, calls
// and results. It gets a server's streams or URL. It does not know how a server is started, or how a job
// configures it.
package mcp
