package runner

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// committed is a repository on main with one commit.
func committed(t *testing.T, files map[string]string) gittest.Repo {
	t.Helper()
	repo := gittest.New(t)
	repo.WriteAll(files)
	repo.Commit("Begin")
	return repo
}

// A run that ends early has a result and a whole transcript wherever it comes to,
// also in a step of Actions; without a run directory the result says why.
func TestEarlyEndHasResult(t *testing.T) {
	repo := committed(t, map[string]string{"README": "Hi.\n"})
	empty, broken := t.TempDir(), filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(broken, nil, 0o600))
	base := repo.Git("rev-parse", "HEAD")
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
		base   string // that the result tells
		job    bool   // that was read, and is in the transcript
	}{
		"no task":        {func(o *Options) { o.Prompt = "" }, "invalid_input/job", base, false},
		"no checkout":    {func(o *Options) { o.Dir = empty }, "invalid_input/no_checkout", "", true},
		"no such base":   {func(o *Options) { o.Set = []string{"repository.base=nosuch"} }, "invalid_input/unknown_base", base, true},
		"no such folder": {func(o *Options) { o.Set = []string{"repository.path=nosuch"} }, "invalid_input/no_such_path", base, true},
		"no session":     {func(o *Options) { o.Replay = filepath.Join(empty, "nosuch") }, "invalid_input/file", base, true},
		"no key":         {func(o *Options) { o.Replay = "" }, "invalid_input/no_api_key", base, true},
		"a broken token": {func(o *Options) { o.Environ = append(o.Environ, "GITHUB_TOKEN=ghp_1\nghp_2") }, "invalid_input/no_token", base, true},
		"no repository":  {func(o *Options) { o.Publish = publish.ToForge }, "invalid_input/no_repository", base, true},
		"a clone that is none": {func(o *Options) {
			o.Set = []string{"repository.name=octo/widgets"}
			o.Environ = append(o.Environ, "GITHUB_SERVER_URL=http://127.0.0.1:1", "GITHUB_API_URL=http://127.0.0.1:1")
		}, "forge_failed/unavailable", base, true},
		"no run directory":    {func(o *Options) { o.Out = filepath.Join(broken, "run") }, "invalid_input/run_directory", "", false},
		"in the checkout":     {func(o *Options) { o.Out = filepath.Join(repo.Dir, "run") }, "invalid_input/run_directory", "", false},
		"a directory in use":  {func(o *Options) { o.Out = filepath.Dir(broken) }, "invalid_input/run_directory", "", false},
		"a signal by then":    {nil, "cancelled/sigterm", "", false},
		"nothing was changed": {func(*Options) {}, "no_changes/nothing_to_do", base, true},
	} {
		for _, inStep := range []bool{false, true} {
			var log bytes.Buffer
			o := Options{Prompt: "Greet.", Dir: repo.Dir, Out: filepath.Join(t.TempDir(), "run"), Replay: modeltest.Session(t, "version: 1\nturns:\n  - output:\n      - say: Nothing to do.\n"), Publish: publish.ToLocal}
			o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			o.Set = []string{"policy.sandbox=danger-full-access"}
			if inStep {
				o.Step = &actions.Step{Log: actions.NewLog(&log), OutputFile: filepath.Join(t.TempDir(), "output"), SummaryFile: filepath.Join(t.TempDir(), "summary")}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			if c.change == nil {
				cancel(outcome.Stopf(outcome.Cancelled, "sigterm", "The run was cancelled."))
			} else {
				c.change(&o)
			}
			result := Run(ctx, o)
			cancel(nil)
			must.Same(t, c.want, string(result.Outcome)+"/"+result.Reason, name, result.Message)
			must.None(t, result.Errors, name, result.BaseSHA)
			must.Same(t, c.base, result.BaseSHA, name, result.Errors)
			if inStep && !strings.Contains(log.String(), "title=agent-ci") {
				t.Errorf("%s: the step was told %s", name, log.String())
			}
			if result.File == "" {
				continue // there is no run directory
			}
			if view := endedIn(t, result); (string(view.Started.Job) != "null") != c.job {
				t.Errorf("%s: the transcript has the job %s", name, view.Started.Job)
			}
		}
	}
}

// endedIn reads what a run left, which must be whole.
func endedIn(t *testing.T, result record.Result) *transcript.View {
	t.Helper()
	dir := must.Get(record.OpenDirectory(result.Directory))(t)
	defer dir.Close()
	view := must.Get(dir.View())(t)
	var written record.Result
	if there, err := dir.ReadJSON(record.ResultFile, &written); !there || err != nil {
		t.Fatalf("no result: %v", err)
	}
	if head, err := dir.CheckChain(); err != nil || head != result.TranscriptSHA256 || written.Reason != result.Reason || dir.Has(record.StateFolder) {
		t.Errorf("%s: %v; the result is %s", head, err, written.Reason)
	}
	return view
}
