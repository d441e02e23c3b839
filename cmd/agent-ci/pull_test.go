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
	"tick":     usage("NUMBER TEXT", tickBoxes),
	"members":  usage("[LOGIN…]", setCollaborators),
	"drafted":  usage("NUMBER", makeDraft),
	"reopen":   usage("NUMBER", reopenPull),
	"retarget": usage("NUMBER BASE", retargetPull),
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
		want, err := strconv.Atoi(args[i+2])
		ts.Check(err)
		got := 0
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

// tickBoxes ticks every box of a pull request's body that has a text, as a
// person does on its page: tick NUMBER TEXT.
func tickBoxes(ts *testscript.TestScript, args []string) {
	changePull(ts, args[0], func(p *forgetest.PullRequest) {
		p.Body = strings.ReplaceAll(strings.ReplaceAll(p.Body, "[ ] "+args[1], "[x] "+args[1]), "\n", "\r\n")
	})
}

// setCollaborators says who can be assigned and asked for a review:
// members LOGIN….
func setCollaborators(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.Collaborators = args
}

// makeDraft makes a pull request a draft, as a person does: drafted NUMBER.
func makeDraft(ts *testscript.TestScript, args []string) {
	changePull(ts, args[0], func(p *forgetest.PullRequest) { p.Draft = true })
}

// reopenPull opens a closed pull request again, as a person does: reopen NUMBER.
func reopenPull(ts *testscript.TestScript, args []string) {
	changePull(ts, args[0], func(p *forgetest.PullRequest) { p.State = "open" })
}

// retargetPull gives a pull request another base, as a person does:
// retarget NUMBER BASE.
func retargetPull(ts *testscript.TestScript, args []string) {
	changePull(ts, args[0], func(p *forgetest.PullRequest) { p.Base = args[1] })
}
