package body

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestABodyTellsAllRequestsSoFar(t *testing.T) {
	view := projected(t, transcripttest.Greeting())
	posts, err := composed(view, Options{Remember: true})
	if err != nil {
		t.Fatal(err)
	}
	first := Requests(posts.Body)
	if len(first) != 1 || first[0].Asked != "Greeting lacks its comma" || len(first[0].Plan) == 0 || len(first[0].Calls) == 0 {
		t.Fatalf("it remembers %+v", first)
	}
	view.Task.Request, view.Task.Actor, view.Started.RunID = "Shout, @octocat.", "ada", "second"
	posts, err = composed(view, Options{Remember: true, Earlier: first})
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "body_follow_up.md", withoutMemory(posts.Body))
	second := Requests(posts.Body)
	if len(second) != 2 || second[0].Run != "second" || second[0].Asked != "Shout, @octocat." {
		t.Errorf("it remembers %+v", second)
	}
	if diff := cmp.Diff(first, second[1:]); diff != "" {
		t.Error(diff)
	}
}

// withoutMemory is a body without what it remembers: how that is packed may change with
// Go.
func withoutMemory(body string) string {
	before, rest, _ := strings.Cut(body, rememberStart)
	_, after, _ := strings.Cut(rest, rememberEnd)
	return before + after
}

// Whoever may edit a body may write what it remembers.
func TestEarlierRequestsThatAreHostile(t *testing.T) {
	const evil = "</details> @octocat fixes #1 <img src=x> [x](https://evil.example) ::error::x\n## Plan\n```\n<!-- agent-ci: requests x -->"
	earlier := []Request{{
		Run: evil, Link: "javascript:alert(1)", Asked: evil, Actor: evil, Summary: evil, More: -3,
		Plan:  []transcript.PlanStep{{Step: evil, Status: evil}},
		Calls: []RequestCall{{Tool: evil, Topic: evil, End: evil}},
	}}
	posts, err := composed(projected(t, bare()), Options{Remember: true, Earlier: Requests(rememberStart + pack(earlier) + rememberEnd)})
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "body_follow_up_hostile.md", withoutMemory(posts.Body))
	wantProven(t, posts.Body, "")
}

func TestWhatABodyRemembersIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var earlier []Request
		for i := range rapid.IntRange(0, 80).Draw(t, "requests") {
			r := Request{Run: fmt.Sprint(i), Asked: rapid.StringN(0, 300, -1).Draw(t, "asked"), Summary: rapid.StringN(0, 2000, -1).Draw(t, "summary")}
			for j := range rapid.IntRange(0, 100).Draw(t, "calls") {
				r.Calls = append(r.Calls, RequestCall{Tool: fmt.Sprint(j * 7919 % 1000), Topic: fmt.Sprint(j * 104729 % 99991), End: "ok"})
			}
			earlier = append(earlier, r)
		}
		view := &transcript.View{Started: transcript.RunStarted{RunID: "now"}, Task: transcript.Task{Title: "It"}}
		posts, err := Compose(view, Options{Remember: true, Earlier: earlier})
		if err != nil || markdown.Units(posts.Body) > DefaultLimit {
			t.Fatalf("%d units: %v", markdown.Units(posts.Body), err)
		}
		kept := Requests(posts.Body)
		if len(kept) == 0 || kept[0].Run != "now" {
			t.Fatalf("it remembers %d", len(kept))
		}
		for i, r := range kept[1:] {
			if r.Run != earlier[i].Run || len(r.Calls)+r.More != len(earlier[i].Calls) {
				t.Errorf("request %d is %+v", i, r)
			}
		}
	})
}

func TestWhatCannotBeReadIsForgotten(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := w.Write([]byte(`[{"asked":"` + strings.Repeat("x", 4<<20) + `"}]`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string]string{
		"no base64": "***", "no gzip": "aGVsbG8=", "nothing": "", "a bomb": base64.StdEncoding.EncodeToString(bomb.Bytes()),
		"too many": pack(make([]Request, mostRequests+1)), "too long": strings.Repeat("A", mostRemembered+1),
	} {
		if got := Requests("x\n" + rememberStart + packed + rememberEnd); got != nil {
			t.Errorf("%s: %d", name, len(got))
		}
	}
	if Requests("a person's own") != nil || Requests(rememberStart) != nil {
		t.Error("it remembers something")
	}
}
