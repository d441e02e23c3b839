// Package rules owns files of rules: their language, their self-tests, and the match of rules with
// commands and hosts. It knows argument vectors, but neither shells nor sandboxes nor the
// consequences of a match.
//
// The language is Starlark with the functions of Codex's execpolicy, so one file serves both.
// docs/reference/policy.md describes it.
package rules

import (
	"fmt"
	"path"
	"slices"
)

// Decision is the answer of a rule.
type Decision int

// The decisions, the strictest last.
const (
	Allow Decision = iota
	Prompt
	Forbidden
)

var decisionNames = [...]string{"allow", "prompt", "forbidden"}

func (d Decision) String() string { return decisionNames[d] }

// MarshalText writes the decision as rules files do.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Place is the line of a rules file where a rule begins.
type Place struct {
	File string
	Line int
}

// String returns file:line.
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// MarshalText returns String.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Rule is a prefix_rule.
type Rule struct {
	At            Place
	pattern       [][]string // the permitted texts of each word
	Decision      Decision
	Justification string
}

// executable is a host_executable: the paths of a program name.
type executable struct {
	name  string
	paths []string
}

// Network is a network_rule.
type Network struct {
	At            Place
	host          string // lower case, without port
	protocol      string // http, https, socks5_tcp, socks5_udp
	Decision      Decision
	Justification string
}

// Set contains the rules of all files. The zero value and nil are empty sets. A Set does not change
// after Load, so it is safe for concurrent use.
type Set struct {
	rules       []Rule
	executables []executable
	network     []Network
}

// Match is a rule with a pattern at the beginning of a command.
type Match struct {
	Rule   *Rule
	Prefix []string // the words that match
}

// Match returns the rules for a command, in their order. prefix holds the command's known words; a
// longer pattern does not match.
//
// A rule for a bare name also matches paths ending in it. A forbidding or prompting rule matches any
// such path. An allowing rule matches absolute paths only, and if host_executable lists paths for the
// name, only those.
func (s *Set) Match(prefix []string) []Match {
	if s == nil || len(prefix) == 0 {
		return nil
	}
	program, name := prefix[0], path.Base(prefix[0])
	var matches []Match
	for i := range s.rules {
		rule := &s.rules[i]
		namesPath := slices.Contains(rule.pattern[0], program)
		namesProgram := slices.Contains(rule.pattern[0], name) && (rule.Decision != Allow || s.coversPath(program, name))
		if (namesPath || namesProgram) && rule.matchesArguments(prefix[1:]) {
			matches = append(matches, Match{rule, prefix[:len(rule.pattern)]})
		}
	}
	return matches
}

// matchesArguments reports whether the words after the program match the pattern.
func (r *Rule) matchesArguments(args []string) bool {
	rest := r.pattern[1:]
	if len(args) < len(rest) {
		return false
	}
	for i, token := range rest {
		if !slices.Contains(token, args[i]) {
			return false
		}
	}
	return true
}

// coversPath reports whether an allowing rule for name covers the program with this path. The path
// must be absolute. If there is a host_executable for name, the last one must list the path.
func (s *Set) coversPath(program, name string) bool {
	if !path.IsAbs(program) {
		return false
	}
	for _, host := range slices.Backward(s.executables) {
		if host.name == name {
			return slices.Contains(host.paths, program)
		}
	}
	return true
}

// NetworkRule returns the strictest network_rule for a host, with or without port, and a protocol. ok is
// false if there is none.
func (s *Set) NetworkRule(host, protocol string) (rule Network, ok bool) {
	host, err := normalizeHost(host)
	if s == nil || err != nil {
		return Network{}, false
	}
	for _, n := range s.network {
		isStricter := !ok || n.Decision > rule.Decision
		if n.host == host && n.protocol == protocol && isStricter {
			rule, ok = n, true
		}
	}
	return rule, ok
}
