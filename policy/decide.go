// Package policy decides what a run may do: start a command, pass it a variable, reach a host,
// change a path. It knows patterns, rules and names. It starts nothing and reads no file. Package
// sandbox confines commands; package secrets finds secrets.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/shell"
)

// Commands decides whether commands may start. Nobody can be asked (approval policy never), so each command
// is run or refused. The zero value knows only the built-in refusals. docs/reference/policy.md has the
// table of decisions.
type Commands struct {
	Rules     *rules.Set
	Sandboxed bool     // commands run in the sandbox
	Writable  []string // folders that sandboxed commands may write, absolute and clean
	Home      string   // home folder of the user who runs the commands
}

// Request describes a command before its start.
type Request struct {
	Argv   []string // program and arguments
	Script string   // script for the shell that agent-ci chooses; Argv is then empty
	Dir    string   // working directory, absolute
}

// Action is what happens to a command.
type Action string

// maxShownCommand is how many bytes of a command a sentence shows.
const maxShownCommand = 160

const (
	Run          Action = "run"
	RunSandboxed Action = "run_sandboxed"
	Refuse       Action = "refuse"
)

// Decision is the result of Commands.Decide, as events record it.
type Decision struct {
	Action  Action `json:"action"`
	Command string `json:"command,omitempty"` // the refused command, possibly a part of the request
	Rule    string `json:"rule,omitempty"`    // the refusing rule: file:line, or built-in:name
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy,omitempty"` // what to do instead
	// Allowed reports whether the parser understood the whole command line and a rule allows every
	// command in it. It never removes the sandbox.
	Allowed bool `json:"allowed_by_rule"`
	// Unclear is the reason why no rule can allow the whole command line.
	Unclear string    `json:"unclear,omitempty"`
	Matches []Matched `json:"matched_rules"`
}

// Matched is a rule whose prefix matches a command of the request.
type Matched struct {
	Rule          rules.Place    `json:"rule"`
	Decision      rules.Decision `json:"decision"`
	Prefix        []string       `json:"prefix"`
	Command       string         `json:"command"`
	Via           []string       `json:"via,omitempty"` // programs that start the command
	Justification string         `json:"justification,omitempty"`
}

// The built-in refusals, as Decision.Rule names them.
const (
	ruleExcess     = "built-in:nesting"
	ruleForced     = "built-in:forced-removal"
	ruleEverything = "built-in:removes-everything"
)

const otherWayRemedy = "Reach the goal in another way; where there is none, say so in your last message instead of trying variations of the command"

// Decide decides about a command line by its rules and the built-in refusals. The strictest answer counts.
func (c Commands) Decide(request Request) Decision {
	reading := request.readCommands()
	d := Decision{Action: Run, Reason: "No rule refuses it.", Unclear: reading.Unclear, Matches: []Matched{}}
	if c.Sandboxed {
		d.Action = RunSandboxed
	}
	allowed := c.allowedByRules(&d, reading)
	strictest := c.strictestMatch(&d, reading)
	d.Allowed = len(allowed) > 0 && !slices.Contains(allowed, false) && strictest == nil
	switch {
	case strictest != nil:
		return d.asRefusal(strictest.newRefusal())
	case reading.TooComplex != "":
		return d.asRefusal(refusal{
			command: request.commandLine(), rule: ruleExcess,
			reason: "agent-ci cannot tell what the command runs: " + reading.TooComplex,
			remedy: "Run the inner command itself, or put a long script in a file and run that",
		})
	}
	for _, command := range reading.Commands {
		// A rule that allows the outermost command lifts the refusal of forced removals in it.
		allowedByRule := command.Top >= 0 && command.Top < len(allowed) && allowed[command.Top]
		if refusal, dangerous := c.removalRefusal(command, removalContext{dir: request.Dir, unknownDir: reading.ChangesDir, allowedByRule: allowedByRule}); dangerous {
			return d.asRefusal(refusal)
		}
	}
	if d.Allowed {
		d.Reason = "A rule allows each of its commands."
	}
	return d
}

// readCommands returns the commands in the argument vector, or else in the script.
func (request Request) readCommands() shell.Reading {
	if len(request.Argv) > 0 {
		return shell.ReadArgv(request.Argv)
	}
	return shell.ReadScript(request.Script)
}

// commandLine returns the command line for people.
func (request Request) commandLine() string {
	if len(request.Argv) > 0 {
		return strings.Join(request.Argv, " ")
	}
	return request.Script
}

// allowedByRules reports for each command of a plain list whether a rule allows it. It adds the allowing
// rules to d.Matches.
func (c Commands) allowedByRules(d *Decision, reading shell.Reading) []bool {
	allowed := make([]bool, len(reading.Plain))
	for i, argv := range reading.Plain {
		for _, m := range c.Rules.Match(argv) {
			if m.Rule.Decision == rules.Allow {
				allowed[i] = true
				d.recordMatch(m, strings.Join(argv, " "), nil)
			}
		}
	}
	return allowed
}

// strictestMatch adds every rule that refuses a command, at any depth, to d.Matches. It returns the
// strictest one, or nil.
func (c Commands) strictestMatch(d *Decision, reading shell.Reading) (strictest *Matched) {
	for _, command := range reading.Commands {
		for _, m := range c.Rules.Match(command.Prefix()) {
			if m.Rule.Decision == rules.Allow {
				continue
			}
			matched := d.recordMatch(m, command.String(), command.Via)
			if strictest == nil || matched.Decision > strictest.Decision {
				strictest = &matched
			}
		}
	}
	return strictest
}

// maxRecordedRules bounds Decision.Matches.
const maxRecordedRules = 100

// recordMatch returns m in the form of Decision.Matches, and adds it there below maxRecordedRules.
func (d *Decision) recordMatch(m rules.Match, command string, via []string) Matched {
	matched := Matched{
		Rule: m.Rule.At, Decision: m.Rule.Decision, Prefix: m.Prefix, Command: clip.Line(command, maxShownCommand), Via: via, Justification: m.Rule.Justification,
	}
	if len(d.Matches) < maxRecordedRules {
		d.Matches = append(d.Matches, matched)
	}
	return matched
}

// refusal is a refused command. Its reason and remedy have no full stop.
type refusal struct{ command, rule, reason, remedy string }

// newRefusal returns the refusal of a command that m matches.
func (m Matched) newRefusal() refusal {
	r := refusal{command: m.Command, rule: m.Rule.String(), remedy: otherWayRemedy}
	prefix := strings.Join(m.Prefix, " ")
	r.reason = fmt.Sprintf("The rules forbid commands that begin with `%s`", prefix)
	if m.Decision == rules.Prompt {
		r.reason = fmt.Sprintf("The rules want a person to approve commands that begin with `%s`, and the approval policy is never", prefix)
	}
	if m.Justification != "" {
		r.reason += ": " + strings.TrimSuffix(m.Justification, ".")
	}
	return r
}

// asRefusal returns the decision changed to a refusal.
func (d Decision) asRefusal(r refusal) Decision {
	d.Action, d.Command, d.Rule, d.Allowed = Refuse, clip.Line(r.command, maxShownCommand), r.rule, false
	d.Reason, d.Remedy = r.reason+".", r.remedy+"."
	return d
}

// Words tells the model why its command was refused, and the remedy.
func (d Decision) Words() string {
	return fmt.Sprintf("`%s` was not run (%s). %s %s", d.Command, d.Rule, d.Reason, d.Remedy)
}
