package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// nested are the entries of the page that stand below others: the tool, and the event that began
// what called it.
func nested(page string) (all []string) {
	entry := regexp.MustCompile(`(?s)<li class="call nested.*?<b>(\w+)</b>.*?</li>`)
	by := regexp.MustCompile(`Called by <a href="#e(\d+)">`)
	for _, found := range entry.FindAllStringSubmatch(page, -1) {
		caller := "none"
		if link := by.FindStringSubmatch(found[0]); link != nil {
			caller = link[1]
		}
		all = append(all, found[1]+" "+caller)
	}
	return all
}

func TestCallsOfScriptsStandBelowThem(t *testing.T) {
	page := rendered(t, recorded(t, transcripttest.Scripts()))
	want := []string{"exec_command 9", "read_file 9", "read_file 9", "apply_patch 9"}
	if got := nested(page); !slices.Equal(got, want) {
		t.Errorf("below others are %q, want %q", got, want)
	}
	for _, told := range []string{
		`id="e9"`, `<p class="part">Script</p>`, `<code>const names = await tools.exec_command({cmd: &#34;ls&#34;}); …</code>`,
		`<dd>6</dd>`,
	} {
		if !strings.Contains(page, told) {
			t.Errorf("the page does not have %q", told)
		}
	}
}

func TestAScriptWithManyCalls(t *testing.T) {
	run := append(transcripttest.Scripts()[:7], transcripttest.CalledBy(1, 1, 0, "c1", "exec", "for (;;) tools.read_file({path: 'a'})"))
	for i := range 600 {
		id := fmt.Sprintf("c1.%d", i+1)
		run = append(run, transcripttest.CalledBy(1, i+1, 1, id, "read_file", `{"path":"a"}`), transcripttest.EndedBy(1, i+1, 1, id, "read_file", transcripttest.Numbered(2000)))
	}
	run = append(run, transcripttest.EndedBy(1, 1, 0, "c1", "exec", "Script completed"), happening{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{}})
	page := rendered(t, recorded(t, run))
	if got := len(nested(page)); got != 600 {
		t.Errorf("%d calls stand below the script", got)
	}
	if len(page) > 6<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if !strings.Contains(page, "<dd>601</dd>") {
		t.Error("the page does not tell of 601 calls")
	}
}

func TestToolsThatStandInTheInputAreNamed(t *testing.T) {
	run := append(transcripttest.Scripts()[:6], happening{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 1, Input: []json.RawMessage{json.RawMessage(
		`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"},{"type":"function","name":"wait"}]},{"type":"web_search"}]}`,
	)}}})
	if page := rendered(t, recorded(t, run)); !strings.Contains(page, "Tools offered") || !strings.Contains(page, "exec, wait, web_search") {
		t.Error("the page does not name the tools")
	}
}
