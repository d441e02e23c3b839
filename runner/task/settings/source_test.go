package settings_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// files are what lies below a folder, by path; "-> " begins the target of a link.
type files map[string]string

func (f files) put(t *testing.T, folder string) {
	t.Helper()
	for name, content := range f {
		in := gittest.Repo{T: t, Dir: folder}
		if target, is := strings.CutPrefix(content, "-> "); is {
			in.Link(target, name)
		} else {
			in.Write(name, content)
		}
	}
}

// committed is a checkout whose base commit has these files.
func committed(t *testing.T, have files) settings.Commit {
	t.Helper()
	repo := gittest.New(t)
	have.put(t, repo.Dir)
	repo.Commit("first")
	checkout := must.Get(gitops.Open(t.Context(), gitops.Options{Dir: repo.Dir, Git: gittest.Program(t), State: t.TempDir()}))(t)
	t.Cleanup(func() { _ = checkout.Close() })
	base := must.Get(checkout.SetBase(gitops.BaseSpec{}))(t)
	return settings.Commit{Checkout: checkout, SHA: base.SHA}
}

// source reads settings, and gives the codes of its warnings.
func source(given settings.Inputs) (*settings.Source, *[]string) {
	codes := &[]string{}
	return &settings.Source{Inputs: given, Warn: func(code, _ string, _ ...any) { *codes = append(*codes, code) }}, codes
}

var inActions = settings.Environment{"GITHUB_ACTIONS=true"}

func TestReadFilePicksDiskOrBase(t *testing.T) {
	write := func(name, text string) func(string) error {
		return func(root string) error { return os.WriteFile(filepath.Join(root, name), []byte(text), 0o600) }
	}
	remove := func(root string) error { return os.Remove(filepath.Join(root, "ci/job.yml")) }
	for name, c := range map[string]struct {
		file              string // below the checkout
		change            func(root string) error
		here, actions     string // what counts
		warned            bool   // here
		noHere, noActions string // the reason, where nothing counts
	}{
		"as it is in the base": {"ci/job.yml", nil, "base", "base", false, "", ""},
		"changed":              {"ci/job.yml", write("ci/job.yml", "disk"), "disk", "base", true, "", ""},
		"emptied":              {"ci/job.yml", write("ci/job.yml", ""), "", "base", true, "", ""},
		"deleted":              {"ci/job.yml", remove, "base", "base", false, "", ""},
		"a folder in its place": {"ci/job.yml", func(root string) error {
			return errors.Join(remove(root), os.Mkdir(filepath.Join(root, "ci/job.yml"), 0o700))
		}, "base", "base", false, "", ""},
		"not committed":     {"ci/new.yml", write("ci/new.yml", "disk"), "disk", "", true, "", "job_not_in_base"},
		"nowhere":           {"ci/none.yml", nil, "", "", false, "file", "job_not_in_base"},
		"in no folder":      {"none/job.yml", nil, "", "", false, "file", "file"},
		"a committed link":  {"ci/link.yml", nil, "base", "", true, "", "job_not_in_base"},
		"by a linked way":   {"also/job.yml", write("ci/job.yml", "disk"), "disk", "base", true, "", ""},
		"in a folder above": {"../outside.yml", write("../outside.yml", "outside"), "outside", "outside", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := committed(t, files{"ci/job.yml": "base", "ci/link.yml": "-> job.yml", "also": "-> ci"})
			if c.change != nil {
				must.Do(t, c.change(base.Root()))
			}
			path := filepath.Join(base.Root(), c.file)
			s, warnings := source(settings.Inputs{})
			file, err := s.ReadFile(t.Context(), base, path, settings.MaxFileBytes)
			judge(t, "here", file, err, c.here, c.noHere)
			if (len(*warnings) == 1 && (*warnings)[0] == "job_not_committed") != c.warned {
				t.Errorf("here the warnings are %v", *warnings)
			}
			s, warnings = source(settings.Inputs{Env: inActions})
			file, err = s.ReadFile(t.Context(), base, path, settings.MaxFileBytes)
			judge(t, "in Actions", file, err, c.actions, c.noActions)
			must.None(t, *warnings, "in Actions the warnings")
		})
	}
}

func judge(t *testing.T, where string, file settings.File, err error, want, reason string) {
	t.Helper()
	if reason != "" {
		outcometest.Want(t, err, "invalid_input/"+reason)
		return
	}
	if err != nil || string(file.Content) != want || !filepath.IsAbs(file.Path) {
		t.Errorf("%s %s has %q, %v, want %q", where, file.Path, file.Content, err, want)
	}
}

func TestBoundsFileReads(t *testing.T) {
	base := committed(t, files{"job.yml": "12345"})
	outside := t.TempDir()
	files{"job.yml": "12345"}.put(t, outside)
	s, _ := source(settings.Inputs{})
	for limit, fails := range map[int64]bool{4: true, 5: false} {
		file, err := s.ReadFile(t.Context(), base, filepath.Join(base.Root(), "job.yml"), limit)
		must.Same(t, fails, err != nil, limit, "bytes of the base", string(file.Content), err)
		file, err = s.ReadFile(t.Context(), base, filepath.Join(outside, "job.yml"), limit)
		if err != nil || len(file.Content) != 5 { // one byte more tells that it is too long
			t.Errorf("%d bytes from outside: %q, %v", limit, file.Content, err)
		}
	}
	late := outcome.Stopf(outcome.BudgetExceeded, "time", "It is late.")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(late)
	must.Is(t, late, must.Err(s.ReadFile(ctx, base, filepath.Join(outside, "job.yml"), 5)), "after the end of time")
	must.Fail(t, "", must.Err(s.ReadFile(t.Context(), settings.Commit{}, "none.yml", 5)), "without a checkout a file is read that is not there")
}

// What stands in files is below all of these: see layers.txtar.
func TestFlagWinsOverSetOverEnvironment(t *testing.T) {
	s, warnings := source(settings.Inputs{
		Env: settings.Environment{"AGENT_CI_LIMITS_TURNS=3", "AGENT_CI_LIMITS_TOOL_CALLS=7", "AGENT_CI_MODEL_NAME=by-environment"},
		Set: []string{"limits.turns=4", "model.name=by-set"}, Model: "by-flag", Prompt: "Greet.",
	})
	got := must.Get(s.Load(t.Context(), settings.Commit{}))(t)
	must.None(t, *warnings)
	if j := got.Job; j.Model.Name != "by-flag" || j.Limits.Turns != 4 || j.Limits.ToolCalls != 7 || j.Task.Prompt != "Greet." || got.File.Path != "" {
		t.Errorf("%s, %+v, %q", j.Model.Name, j.Limits, got.File.Path)
	}
}

func TestReadsDefaultsFromBase(t *testing.T) {
	const name = ".github/agent-ci.yml"
	for _, env := range []settings.Environment{nil, inActions} {
		base := committed(t, files{name: "version: 1\nlimits: {turns: 5}\n"})
		files{name: "version: 1\nlimits: {turns: 99}\n"}.put(t, base.Root())
		s, warnings := source(settings.Inputs{Env: env, Set: []string{"limits.tokens=9"}})
		for load, want := range map[string]struct {
			from  func(context.Context, settings.Commit) (*settings.Settings, error)
			turns int
			base  settings.Commit
		}{
			"with files":    {s.LoadTemplate, 5, base},
			"as given":      {s.LoadInputs, 200, base},
			"without a git": {s.LoadTemplate, 200, settings.Commit{}},
		} {
			got, err := want.from(t.Context(), want.base)
			if err != nil || got.Job.Limits.Turns != want.turns || got.Job.Limits.Tokens != 9 {
				t.Errorf("%s: %+v, %v", load, got, err)
			}
		}
		must.None(t, *warnings, "the warnings")
	}
	large := committed(t, files{name: "version: 1\n" + strings.Repeat("#", settings.MaxFileBytes)})
	s, _ := source(settings.Inputs{Prompt: "Greet."})
	must.Fail(t, "", must.Err(s.Load(t.Context(), large)), "defaults that are too long are read")
	none := committed(t, files{name + "/file": ""})
	must.Do(t, must.Err(s.Load(t.Context(), none)), "a folder of that name")
}

func TestEventIsDefaultTaskInActions(t *testing.T) {
	for name, c := range map[string]struct {
		env  settings.Environment
		set  []string
		want string
	}{
		"in Actions":             {settings.Environment{"GITHUB_ACTIONS=true", "GITHUB_EVENT_NAME=issues"}, nil, "event"},
		"elsewhere":              {settings.Environment{"GITHUB_EVENT_NAME=issues"}, nil, ""},
		"without an event":       {inActions, nil, ""},
		"the job says something": {settings.Environment{"GITHUB_ACTIONS=true", "GITHUB_EVENT_NAME=issues"}, []string{"task.prompt=Greet."}, ""},
	} {
		s, _ := source(settings.Inputs{Env: c.env, Set: c.set})
		for _, load := range []func(context.Context, settings.Commit) (*settings.Settings, error){s.LoadTemplate, s.LoadInputs} {
			must.Same(t, c.want, must.Get(load(t.Context(), settings.Commit{}))(t).Job.Task.From, name)
		}
	}
}

func TestCountsAndListsMistakes(t *testing.T) {
	for says, given := range map[string]settings.Inputs{
		"The job has a mistake: ":            {Prompt: "Greet.", Set: []string{"limits.turns=none"}},
		"The job has 2 mistakes, the first:": {Prompt: "Greet.", Set: []string{"limits.turns=none", "policy.sandbox=everything"}},
		"--set":                              {Prompt: "Greet.", Set: []string{"no assignment"}},
		"task":                               {}, // there is none
	} {
		s, _ := source(given)
		_, err := s.Load(t.Context(), settings.Commit{})
		outcometest.Want(t, err, "invalid_input/job", says)
		var problems config.Problems
		must.Same(t, true, errors.As(err, &problems), err, "does not list them")
	}
}

func TestReadsPromptFromStdinOnce(t *testing.T) {
	long := strings.Repeat("x", settings.MaxFileBytes)
	for name, c := range map[string]struct{ input, want, says string }{
		"a prompt":   {"\n Greet the octocat.\n", "Greet the octocat.", ""},
		"the most":   {long, long, ""},
		"a byte too": {long + "\n", "", "longer than"},
		"blank":      {" \n\t", "", "is empty"},
		"nothing":    {"", "", "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := source(settings.Inputs{PromptFile: "-", Stdin: iotest.HalfReader(strings.NewReader(c.input))})
			for range 2 { // the job is merged again on another base
				got, err := s.Load(t.Context(), settings.Commit{})
				if c.says != "" {
					outcometest.Want(t, err, "invalid_input/prompt", "standard input")
					return
				}
				if err != nil || got.Job.Task.Prompt != c.want {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	broken := errors.New("broken")
	s, _ := source(settings.Inputs{PromptFile: "-", Stdin: iotest.ErrReader(broken)})
	must.Is(t, broken, must.Err(s.Load(t.Context(), settings.Commit{})), "the error")
}

func TestPicksPromptFromDiskOrBase(t *testing.T) {
	base := committed(t, files{"prompt.txt": "Of the base.\n", "blank.txt": "\n"})
	files{"prompt.txt": "Of the disk.\n"}.put(t, base.Root())
	for _, c := range []struct {
		env        settings.Environment
		file, want string
	}{
		{nil, "prompt.txt", "Of the disk."},
		{inActions, "prompt.txt", "Of the base."},
		{nil, "blank.txt", ""},
		{nil, "none.txt", ""},
	} {
		s, _ := source(settings.Inputs{Env: c.env, PromptFile: filepath.Join(base.Root(), c.file)})
		got, err := s.Load(t.Context(), base)
		if c.want == "" {
			outcometest.Want(t, err, "invalid_input/"+map[string]string{"blank.txt": "prompt", "none.txt": "file"}[c.file], c.file)
			continue
		}
		if err != nil || got.Job.Task.Prompt != c.want {
			t.Errorf("%v %s: %v, %v", c.env, c.file, got, err)
		}
	}
}

func TestReadsOutputSchemaBesideJobFile(t *testing.T) {
	const schema = `{"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}`
	have := files{"ci/schema.json": schema, "ci/text.json": "text", "ci/wrong.json": `{"type": 7}`, "ci/other.json": `{"$ref": "https://example.com/schema"}`}
	for name, reason := range map[string]string{"schema.json": "", "text.json": "output_schema", "wrong.json": "output_schema", "other.json": "output_schema", "none.json": "file"} {
		job := "ci/job-" + name + ".yml"
		all := maps.Clone(have)
		all[job] = fmt.Sprintf("version: 1\ntask: {prompt: Count., output_schema: %s}\n", name)
		base := committed(t, all)
		s, _ := source(settings.Inputs{JobFile: filepath.Join(base.Root(), job)})
		from := must.Get(s.Load(t.Context(), base))(t)
		read, err := s.ReadOutputSchema(t.Context(), base, from)
		if reason != "" {
			outcometest.Want(t, err, "invalid_input/"+reason, name)
			continue
		}
		if err != nil || string(read.Source) != strings.ReplaceAll(schema, " ", "") {
			t.Fatalf("%s, %v", read.Source, err)
		}
		for value, right := range map[string]bool{`{"count": 3}`: true, `{"count": "3"}`: false, `{}`: false, `[3]`: false, `null`: false, `{`: false, ``: false} {
			err := read.Check([]byte(value))
			must.Same(t, right, err == nil, value, err)
		}
	}
	s, _ := source(settings.Inputs{})
	if none, err := s.ReadOutputSchema(t.Context(), settings.Commit{}, &settings.Settings{}); err != nil || none.Source != nil {
		t.Errorf("a job without one: %s, %v", none.Source, err)
	}
}
