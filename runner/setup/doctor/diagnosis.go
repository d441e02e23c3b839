package doctor

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// Diagnosis is a machine's state for runs, and the JSON of docs/reference/doctor.md.
type Diagnosis struct {
	Version     int         `json:"version"` // of this shape: 1
	AgentCI     string      `json:"agent_ci"`
	System      string      `json:"system"` // operating system, architecture, kernel
	Confinement Confinement `json:"confinement"`
	Git         Git         `json:"git"`
	Model       Model       `json:"model"`
	GitHub      GitHub      `json:"github"`
	Problems    []Problem   `json:"problems"`
}

// Problem is an obstacle for runs (error) or a remark for people.
type Problem struct {
	About    string `json:"about"`    // configuration, confinement, git, model, github
	Severity string `json:"severity"` // error or warning
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
)

// Broken reports whether a run could not start on this machine.
func (d *Diagnosis) Broken() bool {
	return slices.ContainsFunc(d.Problems, func(p Problem) bool { return p.Severity == severityError })
}

func (d *Diagnosis) addError(about, message, remedy string) {
	d.Problems = append(d.Problems, Problem{about, severityError, message, remedy})
}

// addErrorOf adds err as an error about a topic. A nil err adds nothing.
func (d *Diagnosis) addErrorOf(ctx context.Context, about string, err error) {
	if err != nil {
		d.addError(about, outcome.ForError(ctx, err).Message, "")
	}
}

func (d *Diagnosis) addWarning(about, message, remedy string) {
	d.Problems = append(d.Problems, Problem{about, severityWarning, message, remedy})
}

type Options struct {
	Dir      string // the checkout, or a folder; empty is the current one
	Environ  []string
	Reserved []string // names of AGENT_CI_ variables that are flags, not job keys
	Version  string   // of this program
	// Online permits requests to the model's API and GitHub. Without it nothing leaves this machine.
	Online bool
}

// Diagnose examines this machine with the configuration that a run in the folder would have.
func Diagnose(ctx context.Context, o Options) (*Diagnosis, error) {
	system := strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + sandbox.Kernel())
	d := &Diagnosis{Version: 1, AgentCI: o.Version, System: system, Problems: []Problem{}}
	p, err := d.readConfiguration(ctx, sandboxcommand.Options{Dir: o.Dir, Environ: o.Environ, Reserved: o.Reserved})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if err := d.examineConfinement(ctx, p); err != nil {
		return nil, err
	}
	for _, w := range p.Record.Warnings() {
		d.addWarning("configuration", w.Message, "")
	}
	d.examineGit(ctx, p)
	if err := d.examineReadiness(ctx, p); err != nil {
		return nil, err
	}
	d.examineModel(ctx, p, o.Online)
	d.examineGitHub(ctx, p, o.Online)
	if ctx.Err() != nil { // the answers of servers may be missing
		return nil, ctx.Err()
	}
	for i, found := range d.Problems {
		d.Problems[i].Message, d.Problems[i].Remedy = outcome.ShortenNames(p.Record.Redact(found.Message)), p.Record.Redact(found.Remedy)
	}
	return d, nil
}

// readConfiguration reads the configuration. It reports mistakes and then uses the built-in settings.
func (d *Diagnosis) readConfiguration(ctx context.Context, o sandboxcommand.Options) (*sandboxcommand.Prepared, error) {
	p, err := sandboxcommand.Prepare(ctx, o)
	stop, isStop := errors.AsType[*outcome.Stop](err)
	if !isStop || stop.Reason == "run_directory" || stop.Reason == "no_such_path" { // other settings would not help
		return p, err
	}
	if stop.Reason != "no_git" { // examineGit reports it
		d.addError("configuration", stop.Message, "")
	}
	return sandboxcommand.Prepare(ctx, o.BuiltIn())
}
