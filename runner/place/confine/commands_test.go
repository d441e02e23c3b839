package confine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// confined are sandboxes that have found out what there is to confine with.
func confined(t *testing.T) *Sandboxes {
	t.Helper()
	s := ready(t)
	err := s.SettleConfinement(t.Context())
	if unavailable := (*sandbox.UnavailableError)(nil); errors.As(err, &unavailable) {
		sandboxtest.SkipUnlessOffered(t, "any", err)
	}
	must.Do(t, err)
	return s
}

func TestScripts(t *testing.T) {
	s := confined(t)
	must.Same(t, false, s.Record.Has(filepath.Join(ScratchFolder, ProbeScratch)), "the probe left its folder")
	for name, c := range map[string]struct {
		run, dir string
		timeout  time.Duration
		color    string
		code     int
		log      string
	}{
		"green":                   {"echo out; echo err >&2", s.Root, time.Hour, "green", 0, "out\nerr\n"},
		"red":                     {"false; echo more", s.Root, time.Hour, "red", 1, ""},
		"out of time":             {"echo never", s.Root, time.Nanosecond, "timeout", 0, "agent-ci: timed out after 1ns\n"},
		"a folder that is not":    {"true", filepath.Join(s.Root, "none"), time.Hour, "red", 127, "agent-ci: "},
		"the run directory is no": {"cat " + s.Record.Join(record.TranscriptFile), s.Root, time.Hour, "red", 1, "No such file"},
	} {
		t.Run(name, func(t *testing.T) {
			log := record.LogName("setup", 1, name)
			ran, err := s.RunScript(t.Context(), Script{Name: name, Run: c.run, Dir: c.dir, Timeout: c.timeout, Log: log, Place: Place{Scratch: SetupScratch}})
			text, _ := s.Record.Read(log)
			if err != nil || ran.Color() != c.color || c.color != "timeout" && ran.ExitCode != c.code || !strings.Contains(string(text), c.log) {
				t.Errorf("ended as %s (%d) by %v: %s", ran.Color(), ran.ExitCode, err, text)
			}
		})
	}
}

func TestInterruptedScriptHasNoResult(t *testing.T) {
	s := confined(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, must.Err(s.RunScript(ctx, Script{Name: "x", Run: "true", Dir: s.Root, Timeout: time.Hour, Log: "outputs/x.log", Place: AgentPlace()})))
	if _, err := s.RunScript(t.Context(), Script{Name: "x", Log: "no/such/folder/x.log"}); err == nil || !strings.HasPrefix(err.Error(), "make log of x: ") {
		t.Errorf("without a log: %v", err)
	}
}

func TestFailureWhileOpening(t *testing.T) {
	s := confined(t)
	failure := errors.New("no tree")
	script := Script{Name: "x", Run: "touch ran", Dir: s.Root, Timeout: time.Hour, Log: "outputs/x.log", Place: AgentPlace(), WhileOpening: func(context.Context) error { return failure }}
	must.Is(t, failure, must.Err(s.RunScript(t.Context(), script)))
	if _, err := os.Lstat(filepath.Join(s.Root, "ran")); err == nil {
		t.Error("the command ran")
	}
	script.WhileOpening = func(context.Context) error { return nil }
	must.Do(t, must.Err(s.RunScript(t.Context(), script)), "the sandbox was left open")
	s.Root = filepath.Join(s.Root, "none")
	script.WhileOpening = func(context.Context) error { return failure }
	if err := must.Err(s.RunScript(t.Context(), script)); err == nil || errors.Is(err, failure) {
		t.Errorf("without a workspace: %v", err)
	}
	s.Job = nil
	defer func() {
		if recover() == nil {
			t.Error("a panic of the other goroutine was lost")
		}
	}()
	_, _ = s.RunScript(t.Context(), script)
}

func TestRemovesPlaceWithTree(t *testing.T) {
	s := confined(t)
	tree := Place{Scratch: "verify-0", Root: s.Record.Join("state", "verify-0")}
	must.Do(t, os.MkdirAll(tree.Root, 0o700))
	ran, err := s.RunScript(t.Context(), Script{
		Run: `mkdir locked && touch locked/x here "$HOME/cache" && chmod 0 locked && test "$ROOT" = "$PWD"`, Dir: tree.Root, Timeout: time.Hour, Log: "outputs/x.log", Place: tree,
	})
	if err != nil || ran.ExitCode != 1 { // no such variable
		t.Fatalf("ended as %v by %v", ran, err)
	}
	must.Do(t, must.Err(os.Lstat(filepath.Join(tree.Root, "here"))), "it wrote elsewhere")
	must.Do(t, errors.Join(s.Remove(tree), s.Remove(AgentPlace())))
	if s.Record.Has("state/verify-0") || s.Record.Has(filepath.Join(ScratchFolder, "verify-0")) {
		t.Error("something of it is left")
	}
	must.Do(t, must.Err(os.Stat(s.Root)), "the checkout is gone")
}

func TestFirstSandboxSetsLevel(t *testing.T) {
	s := ready(t)
	s.Job.Policy.Sandbox = string(grants.DangerFullAccess)
	box := must.Get(s.Open(t.Context(), AgentPlace()))(t)
	defer box.Close()
	must.Same(t, string(sandbox.LevelNone), s.Confinement().Level, "reached")
	s.Job.Policy.Require = string(sandbox.LevelFull)
	if err := s.SettleConfinement(t.Context()); err == nil || outcometest.End(err) != "sandbox_unavailable/level" {
		t.Errorf("required what is not there: %v", err)
	}
}

func TestTriesHostListOfSetup(t *testing.T) {
	s := confined(t)
	list := job.Network{Mode: "hosts", Allow: []job.AllowedHost{{Host: "example.com"}}}
	for _, networks := range [][2]job.Network{{{}, {}}, {list, list}, {{}, list}} {
		s.Job.Policy.Network, s.Job.Setup = networks[0], []job.SetupStep{{}, {Network: networks[1]}}
		err := s.CheckOthersConfinable(t.Context())
		if tried := networks[1].HasList() && !networks[0].HasList(); err != nil && (!tried || s.Confinement().Level == string(sandbox.LevelFull)) {
			t.Errorf("%v: %v", networks, err)
		}
	}
}

// Its file could be read otherwise.
func TestTriesUnusableSecret(t *testing.T) {
	s := confined(t)
	s.Job.Policy.Secrets = []job.Secret{{Name: "TOKEN", From: "/token", Hosts: []string{"npm.example.com"}, Commands: []string{job.CommandsVerify}}}
	if s.Confinement().Level == string(sandbox.LevelFull) {
		must.Do(t, s.CheckOthersConfinable(t.Context()))
	}
	s.Job.Policy.Sandbox = string(grants.DangerFullAccess)
	if err := s.CheckOthersConfinable(t.Context()); err == nil || outcometest.End(err) != "sandbox_unavailable/network" {
		t.Errorf("it runs unconfined: %v", err)
	}
	must.Same(t, sandbox.NetworkProxied, s.Options(s.MostConfined()).Network, "a trial is for the network")
}
