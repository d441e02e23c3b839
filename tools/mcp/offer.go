package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// Offered is a tool of a server as a model is told of it.
type Offered struct {
	Server string // in the job
	Tool   string // the server's own name
	SHA256 string // of the schema as the server gave it
	Spec   tools.Spec
	// Unchecked is which parts of the server's schema arguments are not checked by here, and
	// why; the server checks them itself. Empty for none.
	Unchecked string
}

const (
	longestName = 64 // of a tool, for a model
	hashLength  = 12 // hexadecimal digits behind a name that is not its own
)

// Offer gives the allowed tools of the lists names that models can call, beside those that are
// taken, and schemas that models can be told, sorted by these names. It depends on nothing else,
// and not on the order of the lists. The error is an *Error.
func Offer(lists []List, taken []string) ([]Offered, error) {
	var offered []Offered
	for _, list := range lists {
		for _, tool := range list.Tools {
			if !tool.Allowed {
				continue
			}
			o, err := offer(list, tool)
			if err != nil {
				return nil, err
			}
			offered = append(offered, o)
		}
	}
	if err := name(offered, taken); err != nil {
		return nil, err
	}
	slices.SortFunc(offered, func(a, b Offered) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return offered, nil
}

// offer is a tool without its name.
func offer(list List, tool Listed) (Offered, error) {
	parameters, err := schema.Fit(tool.Schema)
	if err != nil {
		return Offered{}, &Error{
			Reason: ReasonProtocol, Server: list.Server, Err: err,
			Words: fmt.Sprintf("the MCP server %s has a tool %q that cannot be offered: %v; take it out by deny", list.Server, oneLine(tool.Tool), err),
		}
	}
	accepts, unchecked := schema.Checkable(tool.Schema)
	description := tool.Description
	if description == "" {
		description = fmt.Sprintf("The tool %s of the MCP server %s.", oneLine(tool.Tool), list.Server)
	}
	return Offered{
		Server: list.Server, Tool: tool.Tool, SHA256: tool.SHA256, Unchecked: unchecked,
		Spec: tools.Spec{Description: description, Parameters: parameters, Accepts: accepts, Returns: returns},
	}, nil
}

// name names all tools. Tools whose names would be the same all get a hash of what they are, so
// that none depends on which of them came first; so does one whose name another got that way.
func name(offered []Offered, taken []string) error {
	hashed := make([]bool, len(offered))
	for {
		owners := map[string][]int{}
		for i := range offered {
			o := &offered[i]
			o.Spec.Name = o.name(hashed[i])
			owners[o.Spec.Name] = append(owners[o.Spec.Name], i)
		}
		settled := true
		for name, same := range owners {
			if len(same) == 1 && !slices.Contains(taken, name) {
				continue
			}
			settled = false
			if !hash(hashed, same) {
				o := offered[same[0]]
				return &Error{
					Reason: ReasonProtocol, Server: o.Server,
					Words: fmt.Sprintf("the tool %q of the MCP server %s cannot be named: %s is taken; take it out by deny", oneLine(o.Tool), o.Server, name),
				}
			}
		}
		if settled {
			return nil
		}
	}
}

// hash has tools hashed; it says whether one of them was not.
func hash(hashed []bool, tools []int) (fresh bool) {
	for _, i := range tools {
		fresh = fresh || !hashed[i]
		hashed[i] = true
	}
	return fresh
}

// name is what a model calls the tool by: what it is, as far as names allow it, or the beginning
// of that with a hash.
func (o Offered) name(hashed bool) string {
	name := "mcp__" + strings.Map(plain, o.Server) + "__" + strings.Map(plain, o.Tool)
	if len(name) <= longestName && !hashed {
		return name
	}
	sum := sha256.Sum256([]byte(o.Server + "\x00" + o.Tool))
	name = name[:min(len(name), longestName-hashLength-1)]
	return name + "_" + hex.EncodeToString(sum[:])[:hashLength]
}

// plain is a character that names of tools may have.
func plain(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
		return r
	}
	return '_'
}
