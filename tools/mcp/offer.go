package mcp

import "github.com/agent-ci/agent-ci/tools"

// Offered is a tool of a server as a model is told of it.
type Offered struct {
	Server string // in the job
	Tool   string // the server's own name
	SHA256 string // of the schema as the server gave it
	Spec   tools.Spec
}

// Offer gives the allowed tools of the lists names that models can call, beside those that are
// taken, and schemas that models can be told. It depends on nothing else, and not on the order
// of the lists.
func Offer(lists []List, taken []string) ([]Offered, error) { return nil, nil }
