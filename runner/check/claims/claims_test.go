package claims

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/check/lines"
)

// work describes a run, with true and false summaries of it.
type work struct {
	Name  string   `yaml:"name"`
	Patch string   `yaml:"patch"`
	Calls []Text   `yaml:"calls"`
	True  []string `yaml:"true"`
	False []struct {
		Says   string   `yaml:"says"`
		Not    []string `yaml:"not"`    // found in the run
		Missed []string `yaml:"missed"` // false as well, but not read as a claim
	} `yaml:"false"`
}

func (w work) evidence(t *testing.T) Evidence {
	diff := must.Get(lines.Read(strings.NewReader(w.Patch)))(t)
	e := Evidence{Diff: patch(diff), Texts: texts(w.Calls, nil)}
	for _, f := range diff.Files {
		e.Paths = append(e.Paths, f.Path)
	}
	for line := range strings.Lines(w.Patch) {
		if _, path, found := strings.Cut(line, "rename from "); found {
			e.Paths = append(e.Paths, strings.TrimSpace(path))
		}
		if _, path, found := strings.Cut(line, "rename to "); found {
			e.Paths = append(e.Paths, strings.TrimSpace(path))
		}
	}
	return e
}

func patch(diff *lines.Diff) func() (*lines.Diff, error) {
	return func() (*lines.Diff, error) { return diff, nil }
}

func texts(all []Text, failure error) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		for _, text := range all {
			if !yield(text, nil) {
				return
			}
		}
		if failure != nil {
			yield(Text{}, failure)
		}
	}
}

func readWorks(t *testing.T) (works []work) {
	for _, name := range []string{"testdata/summaries.yml", "testdata/languages.yml"} {
		data := must.Get(os.ReadFile(name))(t)
		var some []work
		must.Do(t, yaml.Unmarshal(data, &some), name)
		works = append(works, some...)
	}
	return works
}

func TestFindsFalseClaimsAndDoubtsNoTrueOnes(t *testing.T) {
	right, wrong, missed := 0, 0, 0
	for _, w := range readWorks(t) {
		e := w.evidence(t)
		for _, says := range w.True {
			right++
			if got, err := Unfounded(says, e); err != nil || len(got) > 0 {
				t.Errorf("%s: %q is true, but %q counts as not found (%v)", w.Name, says, got, err)
			}
		}
		for _, f := range w.False {
			wrong++
			if len(f.Missed) > 0 {
				missed++
			}
			must.Same(t, f.Not, must.Get(Unfounded(f.Says, e))(t), w.Name, f.Says)
		}
	}
	if right < 240 || wrong < 120 || missed > wrong/8 {
		t.Errorf("%d true summaries, %d false ones, something missed in %d: want at least 240, 120 and at most an eighth", right, wrong, missed)
	}
}

// Without a transcript nothing says what ran.
func TestComparesOnlyChangeWithoutTexts(t *testing.T) {
	e := Evidence{Paths: []string{"a.go"}, Diff: patch(&lines.Diff{})}
	must.Same(t, []string{"b.go"}, must.Get(Unfounded("Ran `go test ./...`. All 12 tests pass. Updated `b.go`.", e))(t))
}

func TestReportsUnreadableTexts(t *testing.T) {
	broken := errors.New("broken")
	e := Evidence{Diff: patch(&lines.Diff{}), Texts: texts(nil, broken)}
	must.Is(t, broken, must.Err(Unfounded("Ran `go test ./...`.", e)))
	must.Do(t, must.Err(Unfounded("Nothing to tell.", e)), "texts were read for no claim")
}

func TestBoundsClaimsOfLine(t *testing.T) {
	var line strings.Builder
	for i := range 2 * maxExamined {
		fmt.Fprintf(&line, "Ran `go run %d`; ", i)
	}
	must.Same(t, maxExamined, len(readClaims(line.String())), "claims")
}

// Only claims of tests and of files outside of the change read it.
func TestReadsNoChangeForCommands(t *testing.T) {
	unread := func() (*lines.Diff, error) { return nil, errors.New("the change was read") }
	e := Evidence{Paths: []string{"a.go"}, Diff: unread, Texts: texts(nil, nil)}
	must.Same(t, 2, len(must.Get(Unfounded("Updated `a.go`. Ran `go test ./...`. Changed 2 files.", e))(t)))
}

func FuzzUnfounded(f *testing.F) {
	f.Add("Ran `go test ./...`; all 3 tests pass. Updated `a.go`.", "go test ./...")
	f.Fuzz(func(t *testing.T, summary, call string) {
		e := Evidence{Diff: patch(&lines.Diff{}), Texts: texts([]Text{{Input: call, Output: call}}, nil)}
		got, err := Unfounded(summary, e)
		if err != nil || len(got) > maxListed {
			t.Errorf("%d claims, %v", len(got), err)
		}
		for _, name := range got {
			if !strings.Contains(summary, strings.Trim(name, "`")) && !strings.Contains(strings.Join(splitSentences(summary), " "), name) {
				t.Errorf("%q is not in the summary %q", name, summary)
			}
		}
	})
}
