package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Diagnosis is what a run would find here. docs/security.md describes it as
// JSON; keys may be added.
type Diagnosis struct {
	Version     int           `json:"version"` // of this shape: 1
	AgentCI     string        `json:"agent_ci"`
	System      string        `json:"system"` // operating system, architecture, kernel
	Confinement ConfinementIs `json:"confinement"`
	Git         GitIs         `json:"git"`
	Model       ModelIs       `json:"model"`
	GitHub      GitHubIs      `json:"github"`
	Problems    []Problem     `json:"problems"`
}

// ConfinementIs says how commands would be confined.
type ConfinementIs struct {
	Sandbox   string            `json:"sandbox"` // policy.sandbox as it is configured
	Network   string            `json:"network"`
	Require   string            `json:"require,omitempty"`
	Level     string            `json:"level"` // that a run reaches
	Layers    []string          `json:"layers"`
	Trials    []sandbox.Trial   `json:"trials"`
	Settings  []sandbox.Setting `json:"settings"`
	Processes string            `json:"processes"` // what limits them
}

// GitIs says what of git and of a checkout there is.
type GitIs struct {
	Path        string   `json:"path,omitempty"`
	Version     string   `json:"version,omitempty"`
	Checkout    string   `json:"checkout,omitempty"`
	Base        string   `json:"base,omitempty"`
	Origin      string   `json:"origin,omitempty"`
	Credentials []string `json:"credentials"` // files of its configuration that hold some
}

// Problem is something that keeps a run from starting (error) or that a person
// should know.
type Problem struct {
	About    string `json:"about"`    // configuration, confinement, git, model, github
	Severity string `json:"severity"` // error or warning
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`
}

// The severities.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// Broken says whether a run could not start here.
func (d *Diagnosis) Broken() bool {
	for _, p := range d.Problems {
		if p.Severity == severityError {
			return true
		}
	}
	return false
}

func (d *Diagnosis) fault(about, message, remedy string) {
	d.Problems = append(d.Problems, Problem{about, severityError, message, remedy})
}

func (d *Diagnosis) note(about, message, remedy string) {
	d.Problems = append(d.Problems, Problem{about, severityWarning, message, remedy})
}

// Diagnose looks at this machine as a run in the folder would. With online it
// asks the model's API and GitHub, once each, about the key and the token;
// else nothing leaves.
func Diagnose(ctx context.Context, o sandboxcommand.Options, version string, online bool) (*Diagnosis, error) {
	d := &Diagnosis{Version: 1, AgentCI: version, System: systemName(), Problems: []Problem{}}
	s, err := sandboxcommand.LookAround(ctx, o)
	var stop *outcome.Stop
	if errors.As(err, &stop) && stop.Reason != "run_directory" && stop.Reason != "no_such_path" {
		d.fault("configuration", stop.Message, "")
		s, err = sandboxcommand.LookAround(ctx, unconfigured(o)) // the machine is looked at all the same
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, w := range s.Record.Warnings() {
		d.note("configuration", w.Message, "")
	}
	d.examineConfinement(ctx, s.Sandboxes)
	d.examineGit(ctx, s)
	d.examineModel(ctx, s, online)
	d.examineGitHub(ctx, s, online)
	for i, p := range d.Problems {
		d.Problems[i].Message, d.Problems[i].Remedy = s.Record.Redact(p.Message), s.Record.Redact(p.Remedy)
	}
	return d, nil
}

// unconfigured are options by which nothing but what is built in counts.
func unconfigured(o sandboxcommand.Options) sandboxcommand.Options {
	kept := slices.DeleteFunc(slices.Clone(o.Environ), func(variable string) bool { return strings.HasPrefix(variable, "AGENT_CI_") })
	return sandboxcommand.Options{Dir: o.Dir, Environ: kept, Reserved: o.Reserved, Bare: true}
}

func systemName() string {
	return strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + sandbox.Kernel())
}

func (d *Diagnosis) examineConfinement(ctx context.Context, boxes *confine.Sandboxes) {
	p := boxes.Job.Policy
	c := &d.Confinement
	c.Sandbox, c.Network, c.Require, c.Level = p.Sandbox, p.Network.String(), p.Require, string(sandbox.LevelNone)
	c.Settings, c.Layers = sandbox.Settings(), []string{}
	place := confine.Place{Scratch: confine.ProbeScratch}
	options := boxes.Options(place)
	defer boxes.Remove(place)
	level, layers, err := sandbox.Probe(ctx, options)
	if err != nil {
		d.fault("confinement", outcome.Sentence(err.Error())+".", "")
	} else {
		c.Level, c.Layers = string(level), layers
	}
	c.Processes = processesOf(layers)
	if options.Mode == grants.DangerFullAccess {
		options.Mode = grants.WorkspaceWrite
		d.note("confinement", confine.UnconfinedWords, "Set policy.sandbox to workspace-write where the machine can confine.")
	}
	c.Trials = sandbox.Trials(ctx, options)
	for _, s := range c.Settings {
		if s.Remedy != "" && c.Level != string(sandbox.LevelFull) {
			d.note("confinement", s.Name+" is "+s.Value+".", s.Remedy+".")
		}
	}
	if strings.Contains(c.Processes, "not limited") {
		d.note("confinement", "Nothing limits how many processes commands start: "+c.Processes+".",
			"Run as an ordinary user, on Linux 6.14 or newer, or in a cgroup of version 2 that hands pids on to its children.")
	}
}

func processesOf(layers []string) string {
	for _, layer := range layers {
		if strings.Contains(layer, "processes") {
			return layer
		}
	}
	return "not limited"
}

func (d *Diagnosis) examineGit(ctx context.Context, s *sandboxcommand.Surroundings) {
	g := &d.Git
	g.Path, g.Credentials = workspace.FindGit(s.Environ.Get("PATH"), s.Dir), []string{}
	if g.Path == "" {
		d.note("git", "There is no git program on PATH.", "Install git: clones, filters and patches of some repositories need it, and so do agents.")
	} else {
		g.Version = gitVersion(ctx, g.Path)
	}
	checkout, base := s.Workspace.Checkout(), s.Workspace.Base()
	switch {
	case checkout == nil && s.NoCheckout == nil:
		return // the configuration in it has a mistake
	case checkout == nil:
		d.note("git", outcome.Sentence(outcome.Trimmed(s.NoCheckout))+".", "")
		return
	}
	g.Checkout, g.Base, g.Origin = checkout.Root(), strings.TrimSpace(base.Branch+" "+gitops.Short(base.SHA)), s.Record.Redact(checkout.Origin())
	if runtime.GOOS != "linux" {
		return // nothing keeps credentials from commands there
	}
	files, err := guard.Credentials(g.Checkout)
	if err != nil {
		d.fault("git", outcome.Sentence(err.Error())+".", "")
		return
	}
	g.Credentials = append(g.Credentials, files...)
	if len(files) > 0 {
		d.note("git", fmt.Sprintf("Git's configuration holds credentials or names files that do: %s.", strings.Join(files, ", ")),
			"With namespaces commands get a copy without them; without, a run refuses to start. Check out without them (actions/checkout: persist-credentials: false).")
	}
}

func gitVersion(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Dir, cmd.Env = "/", []string{}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
}
