package sandboxcommand

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// options are those of a folder, by which nothing is confined. What is left of a
// command fails the test.
func options(t *testing.T, dir string) Options {
	t.Helper()
	state := t.TempDir()
	t.Cleanup(func() {
		if left, err := filepath.Glob(filepath.Join(state, "agent-ci", "runs", "*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	return Options{Dir: dir, Mode: string(grants.DangerFullAccess), Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "XDG_STATE_HOME=" + state, "MY_API_KEY=of-a-person"}}
}

// reason is that of a stop; other errors are given as they are.
func reason(err error) string {
	var stop *outcome.Stop
	if errors.As(err, &stop) {
		return stop.Reason
	}
	return fmt.Sprint(err)
}

func TestSurroundings(t *testing.T) {
	const network = "version: 1\npolicy:\n  network: full\n"
	for name, c := range map[string]struct {
		make     func(t *testing.T) string
		change   func(o *Options)
		checkout bool
		lacks    error
		want     string // of the error
		network  string
	}{
		"a folder":              {make: (*testing.T).TempDir, lacks: gitops.ErrNotRepository, network: "loopback"},
		"with a variable":       {make: (*testing.T).TempDir, change: func(o *Options) { o.Environ = append(o.Environ, "AGENT_CI_POLICY_NETWORK=none") }, lacks: gitops.ErrNotRepository, network: "none"},
		"with a flag":           {make: (*testing.T).TempDir, change: func(o *Options) { o.Network = "none" }, lacks: gitops.ErrNotRepository, network: "none"},
		"a mistake":             {make: (*testing.T).TempDir, change: func(o *Options) { o.Network = "some" }, want: "job"},
		"no folder":             {make: func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") }, want: "no_such_path"},
		"a checkout":            {make: defaults(network), checkout: true, network: "full"},
		"a checkout, bare":      {make: defaults(network), change: func(o *Options) { o.Bare = true }, network: "loopback"},
		"defaults, mistaken":    {make: defaults("version: 1\npolicy: 1\n"), want: "job"},
		"a repository unborn":   {make: func(t *testing.T) string { return gittest.New(t).Dir }, lacks: gitops.ErrNoCommit, network: "loopback"},
		"files in the checkout": {make: defaults(network), change: func(o *Options) { o.Environ[2] = "XDG_STATE_HOME=" + filepath.Join(o.Dir, "state") }, want: "run_directory"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, c.make(t))
			if c.change != nil {
				c.change(&o)
			}
			s, err := LookAround(t.Context(), o)
			if err != nil || c.want != "" {
				if got := reason(err); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				return
			}
			if checkout := s.Workspace.Checkout() != nil; checkout != c.checkout || !errors.Is(s.NoCheckout, c.lacks) || s.Job.Policy.Network.String() != c.network {
				t.Errorf("checkout %t, %v, network %s", checkout, s.NoCheckout, s.Job.Policy.Network)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// defaults makes a checkout with defaults in its base commit, and others beside it.
func defaults(content string) func(t *testing.T) string {
	return func(t *testing.T) string {
		r := gittest.New(t)
		r.Write(".github/agent-ci.yml", content)
		r.Write(".github/agent-ci.rules", `prefix_rule(pattern = ["rm"], decision = "forbidden")`)
		r.Git("add", ".")
		r.Git("commit", "-q", "-m", "base")
		r.Write(".github/agent-ci.yml", "nothing: of the commit\n")
		return r.Dir
	}
}

func TestACommand(t *testing.T) {
	dir := defaults("version: 1\n")(t)
	s, err := Open(t.Context(), options(t, filepath.Join(dir, ".github")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := strings.Join(s.Warnings(), "\n"); !strings.HasSuffix(got, confine.UnconfinedWords) {
		t.Errorf("warned of %q", got)
	}
	if _, err := s.Start(sandbox.Command{Argv: []string{"rm", "x"}}); reason(err) != "command" {
		t.Errorf("a command that the rules refuse: %v", err)
	}
	var out bytes.Buffer
	p, err := s.Start(sandbox.Command{Argv: []string{"sh", "-c", `pwd; command -v apply_patch; test -z "$MY_API_KEY" && exit 7`}, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	status, err := p.Wait()
	lines := strings.Split(out.String(), "\n")
	if err != nil || status.ExitCode != 7 || filepath.Base(lines[0]) != ".github" || filepath.Base(lines[1]) != "apply_patch" {
		t.Errorf("ended as %v by %v: %s", status, err, &out)
	}
}

func TestWhatIsNotOpenedIsRemoved(t *testing.T) {
	o := options(t, defaults("version: 1\npolicy:\n  rules: [none.rules]\n")(t))
	if _, err := Open(t.Context(), o); reason(err) != "rules" {
		t.Errorf("rules that are not there: %v", err)
	}
	o = options(t, t.TempDir())
	o.Environ = append(o.Environ, "AGENT_CI_POLICY_REQUIRE=full")
	if _, err := Open(t.Context(), o); err == nil {
		t.Error("a level that is not reached")
	}
}
