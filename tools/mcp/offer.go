package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// Offered is a server's tool as described to models.
type Offered struct {
	Server string // the server's name in the job
	Tool   string // the server's own name
	SHA256 string // of the schema as the server gave it
	Spec   tools.Spec
	// Unchecked describes the parts of the schema that only the server checks, or is "".
	Unchecked string
}

const (
	maxOfferedName = 64 // bytes of a tool's name for a model
	hashLength     = 12 // hexadecimal digits at the end of a shortened or ambiguous name
)

// Offer returns the allowed tools of all lists with names and schemas for models, sorted by name. Names
// are unique, differ from taken ones, and do not depend on the lists' order. The error is an *Error.
func Offer(lists []List, taken []string) ([]Offered, error) {
	var offered []Offered
	for _, list := range lists {
		for _, tool := range list.Tools {
			if !tool.Allowed {
				continue
			}
			o, err := toOffered(list, tool)
			if err != nil {
				return nil, err
			}
			offered = append(offered, o)
		}
	}
	if err := assignNames(offered, taken); err != nil {
		return nil, err
	}
	slices.SortFunc(offered, func(a, b Offered) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return offered, nil
}

// toOffered returns a tool for models, without its name. The error is an *Error.
func toOffered(list List, tool Listed) (Offered, error) {
	parameters, err := schema.Fit(tool.Schema)
	if err != nil {
		return Offered{}, &Error{
			Reason: ReasonProtocol, Err: err,
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

// assignNames sets the names of all tools. If tools have the same name or a taken one, all of them get a hash, so
// that names do not depend on the order. It repeats that until all names are unique and not taken. The error is an
// *Error.
func assignNames(offered []Offered, taken []string) error {
	hashed := make([]bool, len(offered))
	for {
		owners := map[string][]int{} // indexes into offered, by name
		for i := range offered {
			o := &offered[i]
			o.Spec.Name = o.name(hashed[i])
			owners[o.Spec.Name] = append(owners[o.Spec.Name], i)
		}
		unique := true
		for name, indexes := range owners {
			if len(indexes) == 1 && !slices.Contains(taken, name) {
				continue
			}
			unique = false
			hasOtherName := markHashed(hashed, indexes)
			if !hasOtherName {
				o := offered[indexes[0]]
				return &Error{
					Reason: ReasonProtocol,
					Words:  fmt.Sprintf("the tool %q of the MCP server %s cannot be named: %s is taken; take it out by deny", oneLine(o.Tool), o.Server, name),
				}
			}
		}
		if unique {
			return nil
		}
	}
}

// markHashed sets the elements of hashed at the indexes, and reports whether one of them was not set.
func markHashed(hashed []bool, indexes []int) (changed bool) {
	for _, i := range indexes {
		changed = changed || !hashed[i]
		hashed[i] = true
	}
	return changed
}

// name returns the tool's name for a model, made of the server's and the tool's names. If it is too long, or if
// withHash is true, it is cut and ends with a hash of both names.
func (o Offered) name(withHash bool) string {
	name := clip.Name("mcp__"+o.Server+"__"+o.Tool, "-_", '_')
	if len(name) <= maxOfferedName && !withHash {
		return name
	}
	sum := sha256.Sum256([]byte(o.Server + "\x00" + o.Tool))
	return clip.Start(name, maxOfferedName-hashLength-1) + "_" + hex.EncodeToString(sum[:])[:hashLength]
}
