package report

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
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

func TestNestsCallsBelowScripts(t *testing.T) {
	page := rendered(t, unchained(t, transcripttest.Scripts()))
	want := []string{"exec_command 9", "read_file 9", "read_file 9", "apply_patch 9"}
	must.Same(t, want, nested(page), "below others")
	must.Contain(t, page,
		`id="e9"`, `<p class="part">Script</p>`, `<code>const names = await tools.exec_command({cmd: &#34;ls&#34;}); …</code>`,
		`<dd>6</dd>`,
	)
}

func TestNamesToolsOfferedInInput(t *testing.T) {
	run := append(transcripttest.Scripts()[:6], happening{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 1, Input: []json.RawMessage{json.RawMessage(
		`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"},{"type":"function","name":"wait"}]},{"type":"web_search"}]}`,
	)}}})
	must.Contain(t, rendered(t, unchained(t, run)), "Tools offered", "exec, wait, web_search")
}
