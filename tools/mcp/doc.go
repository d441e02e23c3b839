// Package mcp owns the client of the Model Context Protocol: a session with a server, which
// revision it speaks, its tools as a model can be told of them, calls and their results. How
// a server is started and confined, and what a job says of it, it does not know: it takes the
// two ends of its streams, or an address.
package mcp
