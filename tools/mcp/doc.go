// Package mcp owns the client of the Model Context Protocol: sessions, revisions, tools for models,
// calls and results. It takes a server's streams or address, and knows neither how a server starts
// nor what a job says about it.
package mcp
