package confine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ready are sandboxes over a folder of their own, by the usual policy.
func ready(t *testing.T) *Sandboxes {
	t.Helper()
	rec := recordtest.New(t, "")
	s := &Sandboxes{Control: egress.Control{Record: rec}}
	t.Cleanup(func() { _ = sandbox.RemoveScratch(s.Record.Path()) }) // overlays leave folders that nobody may enter
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	s.Root, s.Job = root, &job.Job{}
	s.Job.Policy.Sandbox, s.Job.Policy.Network = string(grants.WorkspaceWrite), job.Network{Mode: "loopback"}
	s.Environ = settings.Environment{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	return s
}

func TestRequiresRecordedLevel(t *testing.T) {
	s := ready(t)
	s.Job.Policy.Require = string(sandbox.LevelLandlock)
	if o := s.Options(AgentPlace()); o.At != "" || o.Require != sandbox.LevelLandlock {
		t.Errorf("before anything was tried, at %q and requiring %q", o.At, o.Require)
	}
	s.confinement = record.Confinement{Level: string(sandbox.LevelFull)}
	must.Same(t, sandbox.LevelFull, s.Options(AgentPlace()).At, "after full was reached, at")
}

func TestOptionsFollowPlace(t *testing.T) {
	s := ready(t)
	s.Job.Policy.Sandbox = string(grants.ReadOnly)
	s.Job.Policy.Writable, s.Job.Policy.DenyRead = []string{"out", "~/cache", "/abs"}, []string{"secret"}
	list := job.Network{Mode: "hosts", Allow: []job.AllowedHost{{Host: "example.com"}}}
	elsewhere, kept := t.TempDir(), s.Record.Join("state", "verify-0")
	setup := s.scratchPath(Place{Scratch: SetupScratch})
	must.Do(t, os.MkdirAll(setup, 0o700))
	type facts struct {
		Mode                   grants.Mode
		Workspace, Twin, Below string
		Network                sandbox.Network
		Serves                 bool
	}
	for name, c := range map[string]struct {
		place Place
		want  facts
	}{
		"the agent's":         {AgentPlace(), facts{grants.ReadOnly, s.Root, "", setup, "loopback", false}},
		"of setup":            {Place{Scratch: SetupScratch}, facts{grants.WorkspaceWrite, s.Root, "", "", "loopback", false}},
		"of setup, with list": {Place{Scratch: SetupScratch, Network: list}, facts{grants.WorkspaceWrite, s.Root, "", "", sandbox.NetworkProxied, true}},
		"of a fresh tree":     {Place{Scratch: "verify-0", Root: kept}, facts{grants.WorkspaceWrite, kept, s.Root, setup, "loopback", false}},
		"of another folder":   {Place{Scratch: "verify-0", Root: elsewhere}, facts{grants.WorkspaceWrite, elsewhere, s.Root, setup, "loopback", false}},
	} {
		t.Run(name, func(t *testing.T) {
			o := s.Options(c.place)
			got := facts{o.Mode, o.Workspace, o.SecondPath, strings.Join(o.EarlierScratch, " "), o.Network, o.Serve != nil}
			must.Same(t, c.want, got)
			writable := []string{filepath.Join(s.Root, "out"), filepath.Join(s.Environ.Home(), "cache"), "/abs"}
			must.Same(t, [][]string{writable, {filepath.Join(s.Root, "secret"), s.Record.Path(), record.StatePath(s.Environ.Get)}}, [][]string{o.Writable, o.DenyRead})
		})
	}
}

func TestExplainsOpenFailures(t *testing.T) {
	proxied := sandbox.Options{Network: sandbox.NetworkProxied}
	for name, c := range map[string]struct {
		o    sandbox.Options
		err  error
		want string
	}{
		"nothing to confine with":  {sandbox.Options{}, &sandbox.UnavailableError{Reached: sandbox.LevelNone, Missing: []string{"x"}}, "sandbox_unavailable/kernel"},
		"no /proc":                 {proxied, fmt.Errorf("look: %w", grants.ErrNoProc), "sandbox_unavailable/kernel"},
		"no network to close":      {proxied, &sandbox.UnavailableError{Reached: sandbox.LevelNone}, "sandbox_unavailable/network"},
		"less than is required":    {proxied, &sandbox.UnavailableError{Reached: sandbox.LevelLandlock, Asked: sandbox.LevelFull}, "sandbox_unavailable/level"},
		"what can't be required":   {sandbox.Options{}, &sandbox.UnavailableError{Reached: sandbox.LevelNone, Asked: sandbox.LevelFull}, "sandbox_unavailable/level"},
		"git of others":            {sandbox.Options{}, &guard.CheckoutError{What: "w", Remedy: "r"}, "invalid_input/unsupported_checkout"},
		"an overlay of the living": {sandbox.Options{}, &layer.MountedError{PID: 7}, "invalid_input/not_resumable"},
		"anything else":            {sandbox.Options{}, fs.ErrPermission, "open the sandbox: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Same(t, c.want, outcometest.End(openFailure(c.o, c.err)))
		})
	}
}

func TestDescribesFilesAndNetwork(t *testing.T) {
	s := ready(t)
	for _, c := range []struct {
		level, mode   string
		network       job.Network
		words, reach  string
		networkIsTold string
	}{
		{"full", "workspace-write", job.Network{Mode: "loopback"}, "workspace-write: commands may write in " + s.Root, "loopback", "loopback: "},
		{"landlock", "read-only", job.Network{Mode: "loopback"}, "read-only: ", "none", "none: not even"},
		{"landlock", "read-only", job.Network{Mode: "full"}, "read-only: ", "full", "whatever this machine"},
		{"none", "danger-full-access", job.Network{Mode: "none"}, "none: ", "full", "whatever this machine"},
		{"full", "workspace-write", job.Network{Allow: []job.AllowedHost{{Host: "a.example"}, {Host: "b.example", Private: true}, {Preset: "pypi"}}}, "workspace-write: ", "allow list: a.example, b.example (private), preset pypi", "these hosts alone, on ports 80 (http) and 443 (https) unless one is given, through the proxy that HTTP_PROXY and HTTPS_PROXY name: a.example, b.example, pypi.org, files.pythonhosted.org; "},
	} {
		s.confinement.Level, s.Job.Policy.Sandbox, s.Job.Policy.Network = c.level, c.mode, c.network
		if got := s.DescribeFilesToModel(); !strings.HasPrefix(got, c.words) {
			t.Errorf("%s at %s: %s", c.mode, c.level, got)
		}
		if got := s.DescribeNetworkToModel(); s.Network() != c.reach || !strings.HasPrefix(got, c.networkIsTold) {
			t.Errorf("%s at %s: reach %s, told as %s", c.network, c.level, s.Network(), got)
		}
	}
}

func TestJudgesAndCountsCommands(t *testing.T) {
	s := ready(t)
	set := must.Get(rules.Load(rules.File{Name: "t.rules", Data: []byte(`prefix_rule(pattern = ["rm"], decision = "forbidden")`)}))(t)
	s.Rules, s.confinement = set, record.Confinement{Level: string(sandbox.LevelFull)}
	judge := s.Judge()
	if d := judge(policy.Request{Argv: []string{"ls"}, Dir: s.Root}); d.Action == policy.Refuse || s.DeniedCount() != 0 {
		t.Errorf("ls: %v, %d denied", d, s.DeniedCount())
	}
	if d := judge(policy.Request{Argv: []string{"rm", "x"}, Dir: s.Root}); d.Action != policy.Refuse || d.Words() == "" || s.DeniedCount() != 1 {
		t.Errorf("rm: %v, %d denied", d, s.DeniedCount())
	}
	if d := s.CommandRules().Decide(policy.Request{Argv: []string{"rm"}, Dir: s.Root}); d.Action != policy.Refuse || s.DeniedCount() != 1 {
		t.Errorf("asked of the rules alone: %v, %d denied", d, s.DeniedCount())
	}
}

// stubCheckout is a Checkout that lends and makes nothing.
type stubCheckout struct {
	Checkout
	handed  []string // the paths that ExcludeSecrets got
	refused error
}

func (c *stubCheckout) ExcludeSecrets(found *grants.Secrets) (*grants.Secrets, error) {
	c.handed = append(c.handed, strings.Join(found.Paths(), " "))
	return found, c.refused
}
func (*stubCheckout) NoOverlay(context.Context) (string, error) { return "", nil }
func (*stubCheckout) LentObjects(string) map[string]string      { return nil }
func (*stubCheckout) MakeGit(context.Context, string) error     { return nil }

func TestHidesDeniedFiles(t *testing.T) {
	s := ready(t)
	s.Job.Policy.DenyRead = []string{"key", "later"}
	write := func(name string) {
		must.Do(t, os.WriteFile(filepath.Join(s.Root, name), nil, 0o600))
	}
	checkout := &stubCheckout{}
	s.Checkout = checkout
	write("key")
	must.Do(t, s.HideSecretFiles(t.Context()))
	write("later")
	must.Do(t, s.HideFilesFromSetup(t.Context()))
	if handed := checkout.handed; len(handed) != 2 || !strings.Contains(handed[1], filepath.Join(s.Root, "key")) || s.Options(AgentPlace()).Secrets != s.hidden {
		t.Errorf("handed on: %q", handed)
	}
	there := 0
	for _, secret := range s.hidden.Found {
		if secret.Existed {
			there++
		}
	}
	must.Same(t, 2, there, s.hidden.Found, "are there")
}

func TestResumeKeepsHiddenFiles(t *testing.T) {
	s := ready(t)
	s.Job.Policy.DenyRead = []string{"made-since"}
	s.Earlier.Hidden = &grants.Secrets{Within: []string{s.Root}, Found: []grants.Secret{{Path: filepath.Join(s.Root, "key"), Existed: true}}}
	if err := s.HideSecretFiles(t.Context()); err != nil || s.hidden != s.Earlier.Hidden {
		t.Errorf("%v are hidden: %v", s.hidden, err)
	}
}

func TestHidesSecretFiles(t *testing.T) {
	s := ready(t)
	s.Job.Policy.Secrets = []job.Secret{{Name: "X", From: "~/token", Hosts: []string{"api.example.com"}}}
	if denied := s.Options(AgentPlace()).DenyRead; !slices.Contains(denied, filepath.Join(s.Environ.Home(), "token")) {
		t.Errorf("kept from commands are %q", denied)
	}
}

func TestRefusesUnhidableFiles(t *testing.T) {
	s, refused := ready(t), errors.New("it is tracked")
	s.Checkout = &stubCheckout{refused: refused}
	if err := s.HideSecretFiles(t.Context()); !errors.Is(err, refused) || s.hidden != nil {
		t.Errorf("%v are hidden: %v", s.hidden, err)
	}
	s.Job.Policy.Sandbox = string(grants.DangerFullAccess)
	if err := errors.Join(s.HideSecretFiles(t.Context()), s.HideFilesFromSetup(t.Context())); err != nil || s.hidden != nil {
		t.Errorf("where nothing is confined, %v are hidden: %v", s.hidden, err)
	}
}

// Commands may remove the .git of a private tree, or leave one in a copy that is not whole.
func TestHasWorkTreeIgnoresGitFolder(t *testing.T) {
	s := ready(t)
	must.Do(t, os.MkdirAll(s.Record.Join(record.PrivateTree, ".git"), 0o700))
	must.Same(t, false, HasWorkTree(s.Record.Directory), "a copy that is not whole is taken for the work")
	must.Do(t, os.Remove(s.Record.Join(record.PrivateTree, ".git")))
	must.Do(t, s.Record.RecordPrivateTree(s.Record.Join(record.PrivateTree), s.Root))
	must.Same(t, true, HasWorkTree(s.Record.Directory), "a work tree without .git is not found")
	must.Do(t, s.dropTree())
	must.Same(t, false, HasWorkTree(s.Record.Directory), "a tree that was dropped is found")
}
