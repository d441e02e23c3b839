package body

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestBodyRemembersEarlierRequests(t *testing.T) {
	view := transcripttest.Folded(t, transcripttest.Greeting())
	posts := must.Get(composed(view, Options{KeepRequest: true}))(t)
	first := Requests(posts.Body)
	if len(first) != 1 || first[0].Asked != "Greeting lacks its comma" || first[0].Summary == "" {
		t.Fatalf("it remembers %+v", first)
	}
	view.Task.RequestText, view.Task.Actor, view.Started.RunID = "Shout, @octocat.", "ada", "second"
	posts = must.Get(composed(view, Options{KeepRequest: true, Remarks: sections.Remarks{Earlier: first}}))(t)
	golden.Compare(t, "testdata/body_follow_up.md", withoutMemory(posts.Body))
	second := Requests(posts.Body)
	if len(second) != 2 || second[0].Run != "second" || second[0].Asked != "Shout, @octocat." {
		t.Errorf("it remembers %+v", second)
	}
	must.Same(t, first, second[1:])
}

// All requests are told as far as what was asked and the run goes, however much there is
// to each; of more than there is room for, how many are not.
func TestBoundsStoredRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%x ", random.IntN(1<<20))
		}
		return b.String()[:n]
	}
	var earlier []sections.Request
	for i := range 60 {
		v := &transcript.View{}
		v.Started.RunID, v.Started.RunPage = fmt.Sprint("run-", i), fmt.Sprint("https://github.com/o/r/actions/runs/", i)
		v.Task.RequestText = fmt.Sprint("request ", i, " ", words(1500))
		v.LastMessage = words(1500)
		mark := requestComment(v, earlier)
		earlier = Requests(mark)
		if markdown.Units(mark) > maxStoredUnits+100 || len(earlier) == 0 {
			t.Fatalf("after %d it has %d units", i, markdown.Units(mark))
		}
		if told := len(earlier) + earlier[len(earlier)-1].OmittedRequests; told != i+1 || i < 20 && len(earlier) != i+1 {
			t.Fatalf("of %d requests %d are told, and %d counted", i+1, len(earlier), told-len(earlier))
		}
		for n, r := range earlier {
			if r.Run != fmt.Sprint("run-", i-n) || r.Link != fmt.Sprint("https://github.com/o/r/actions/runs/", i-n) || !strings.HasPrefix(r.Asked, fmt.Sprint("request ", i-n, " ")) {
				t.Fatalf("request %d is %+v", i-n, r)
			}
		}
	}
	untold := earlier[len(earlier)-1].OmittedRequests
	posts, err := composed(transcripttest.Folded(t, bare()), Options{KeepRequest: true, Remarks: sections.Remarks{Earlier: earlier}})
	if want := fmt.Sprintf("\n%d earlier requests are not shown.\n", untold); err != nil || untold < 2 || !strings.Contains(posts.Body, want) {
		t.Errorf("it does not say %q: %v", want, err)
	}
}

// withoutMemory is a body without what it remembers: how that is packed may change with
// Go.
func withoutMemory(body string) string {
	before, rest, _ := strings.Cut(body, requestsStart)
	_, after, _ := strings.Cut(rest, requestsEnd)
	return before + after
}

func TestIgnoresUnreadableRequests(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	must.Get(w.Write([]byte(`[{"asked":"` + strings.Repeat("x", 4<<20) + `"}]`)))(t)
	must.Do(t, w.Close())
	for name, packed := range map[string]string{
		"no base64": "***", "no gzip": "aGVsbG8=", "nothing": "", "a bomb": base64.StdEncoding.EncodeToString(bomb.Bytes()),
		"too many": compressRequests(make([]sections.Request, maxRequests+1)), "too long": strings.Repeat("A", maxStoredUnits+1),
	} {
		must.None(t, Requests("x\n"+requestsStart+packed+requestsEnd), name)
	}
	if Requests("a person's own") != nil || Requests(requestsStart) != nil {
		t.Error("it remembers something")
	}
}
