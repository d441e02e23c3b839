package job

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// FuzzLoad: whatever a file and an assignment hold, Load gives a job or
// problems, which stand inside of the file and are lines that a terminal shows
// as they are. A job that loads also loads from its own JSON, which is YAML.
func FuzzLoad(f *testing.F) {
	for _, seed := range fuzzSeeds(f) {
		f.Add(seed, "limits.turns=5")
	}
	f.Add(start, "model.headers.X-Team=build")
	f.Add(start, "verify=[{name: a}, {run: &a x}, *a, <<: 1]")
	f.Add(laughs(3), "name=\x1b[2J")
	f.Fuzz(func(t *testing.T, data, assignment string) {
		job, err := Load(jobFile(data), config.SetLayer(assignment))
		if err != nil {
			checkProblems(t, err, countLines(data))
			if job, err = Load(jobFile(data)); err != nil {
				checkProblems(t, err, countLines(data))
				return
			}
		}
		checkReload(t, job)
	})
}

func fuzzSeeds(f *testing.F) []string {
	f.Helper()
	seeds := []string{start, "", "---\n---\n", "\xff"}
	for _, path := range []string{"testdata/bad.yml", "testdata/good/every_key.yml", "testdata/good/issue_quoted.yml"} {
		data := must.Get(os.ReadFile(path))(f)
		seeds = append(seeds, string(data))
	}
	return seeds
}

// countLines counts as YAML 1.1 does, which knows more line breaks than \n.
func countLines(data string) int {
	lines := 1
	for _, r := range data {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) {
			lines++
		}
	}
	return lines
}

func checkProblems(t *testing.T, err error, lines int) {
	t.Helper()
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) == 0 || len(problems) > config.MaxProblems+1 {
		t.Fatalf("the error is %T with %d problems", err, len(problems))
	}
	for _, p := range problems {
		if strings.ContainsFunc(p.String(), unicode.IsControl) || p.Message == "" {
			t.Errorf("a problem is not one printable line: %q", p.String())
		}
		if p.File == "job.yml" && (p.Line < 1 || p.Line > lines+1 || p.Column < 1) {
			t.Errorf("%q is not in the file of %d lines", p.String(), lines)
		}
	}
}

func checkReload(t *testing.T, job *Job) {
	t.Helper()
	written := must.Get(json.Marshal(job))(t)
	if strings.ContainsFunc(string(written), func(r rune) bool { return !unicode.IsPrint(r) }) {
		return // JSON leaves characters unescaped that YAML wants escaped
	}
	again, err := Load(config.Layer{Name: "job.json", Data: written})
	must.Do(t, err, "the job's own JSON does not load", written)
	must.Same(t, job, again, "job after JSON (-before +after)")
}
