package main_test

import (
	"path"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// pullCommands are about what people see of a pull request.
var pullCommands = map[string]func(*testscript.TestScript, bool, []string){
	"sent":     countRequests,
	"members":  usage("[LOGIN…]", setCollaborators),
	"fork":     onPull("NUMBER", func(p *forgetest.PullRequest, _ []string) { p.HeadRepository = "stranger/widgets" }),
	"drafted":  onPull("NUMBER", func(p *forgetest.PullRequest, _ []string) { p.Draft = true }),
	"close":    onPull("NUMBER", func(p *forgetest.PullRequest, _ []string) { p.State = "closed" }),
	"retarget": onPull("NUMBER BASE", func(p *forgetest.PullRequest, args []string) { p.Base = args[0] }),
	"tag":      onPull("NUMBER [LABEL…]", func(p *forgetest.PullRequest, args []string) { p.Labels = args }),
	// mergeable says how a pull request stands to its base, whatever git finds.
	"mergeable": onPull("NUMBER STATE", func(p *forgetest.PullRequest, args []string) { p.Mergeable = args[0] }),
	// tick ticks every box of the body that has a text, as a person does on the page.
	"tick": onPull("NUMBER TEXT", func(p *forgetest.PullRequest, args []string) {
		p.Body = strings.ReplaceAll(strings.ReplaceAll(p.Body, "[ ] "+args[0], "[x] "+args[0]), "\n", "\r\n")
	}),
}

// onPull makes a command that changes a pull request on the forge.
func onPull(words string, change func(p *forgetest.PullRequest, args []string)) func(*testscript.TestScript, bool, []string) {
	return usage(words, func(ts *testscript.TestScript, args []string) {
		worldOf(ts).repo.SetPullRequest(integer(ts, args[0]), func(p *forgetest.PullRequest) { change(p, args[1:]) })
	})
}

// integer reads an argument.
func integer(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// countRequests checks how many requests arrived since the last time that it was
// asked for anything: sent [METHOD PATTERN COUNT]…. Without arguments it begins
// to count.
func countRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%3 != 0 {
		ts.Fatalf("usage: sent [METHOD PATTERN COUNT]…")
	}
	w := worldOf(ts)
	requests := w.forge.Requests()[w.counted:]
	for i := 0; i < len(args); i += 3 {
		want, got := integer(ts, args[i+2]), 0
		for _, r := range requests {
			if matched, _ := path.Match(args[i+1], r.Path); matched && r.Method == args[i] {
				got++
			}
		}
		if got != want {
			ts.Fatalf("%d requests %s %s, want %d", got, args[i], args[i+1], want)
		}
	}
	w.counted += len(requests)
}

// setCollaborators says who can be assigned and asked for a review:
// members LOGIN….
func setCollaborators(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.Collaborators = args
}
