package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// bundle is the run directory of a first half.
type bundle struct {
	*publishing
	dir string
}

// alter changes the data of the events of a kind.
func (b bundle) alter(kind transcript.Type, change func(data map[string]any)) {
	b.t.Helper()
	rechain(b.t, b.dir, kind, func(raw json.RawMessage) json.RawMessage {
		var data map[string]any
		must.Do(b.t, json.Unmarshal(raw, &data))
		change(data)
		return json.RawMessage(asJSON(b.t, data))
	})
}

func (b bundle) publish(args ...string) string {
	b.t.Helper()
	clone := filepath.Join(b.publishing.dir, "clone1")
	b.git(clone, "checkout", "--quiet", ".")
	out, _ := b.agent(append([]string{"publish", b.dir, "--quiet", "--repo", clone}, args...)...)
	return out
}

// newLessonBundle makes a bundle of a run that proposes a lesson.
func newLessonBundle(t *testing.T, propose string) bundle {
	t.Helper()
	w := newPublishing(t)
	w.write("learns.yml", `version: 1
turns:
  - output:
      - {call: exec_command, arguments: {cmd: sed -i s/one/ONE/ greet.sh}}
      - {call: propose_lesson, arguments: {claim: Greetings are loud., evidence: [greet.sh]}}
  - output: [{say: Done.}]
`)
	cmd, out := w.run("learns", "memory.propose="+propose)
	cmd.Args = append(cmd.Args, "--publish", "none")
	must.Do(t, cmd.Run(), out)
	return bundle{w, filepath.Join(w.dir, "clone1.run")}
}

// TestBundleComparesLessonsWithChange has bundles whose transcript tells reviewers of other lessons than
// the change brings.
func TestBundleComparesLessonsWithChange(t *testing.T) {
	t.Parallel()
	harmless := object{"id": "l-0", "claim": "Water is wet.", "evidence": []string{"greet.sh@0123456"}, "run": "r", "date": "2026-01-01"}
	for name, told := range map[string][]any{"none": {}, "others": {harmless}} {
		t.Run(name, func(t *testing.T) {
			b := newLessonBundle(t, "change")
			b.alter("lessons", func(data map[string]any) { data["lessons"] = told })
			out := b.publish("--set", "memory.propose=change")
			if list := b.repo.PullRequests(); len(list) != 1 || !strings.Contains(list[0].Body, "Greetings are loud.") || strings.Contains(list[0].Body, "Water is wet.") {
				t.Errorf("the pull requests are %+v; the bundle ended in %s", list, out)
			}
		})
	}
}

// TestBundleRefusesRunAsEvidence names a run as what shows a lesson, which nobody can look at.
func TestBundleRefusesRunAsEvidence(t *testing.T) {
	t.Parallel()
	b := newLessonBundle(t, "pull_request")
	b.alter("lesson", func(data map[string]any) { data["evidence"] = []string{"run:made-up"} })
	out := b.publish("--set", "memory.propose=pull_request")
	must.Same(t, 1, len(b.repo.PullRequests()), "pull requests; the bundle ended in", out)
}
