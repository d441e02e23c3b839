package main_test

import (
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// planCommands give a forge more than one repository.
var planCommands = map[string]func(*testscript.TestScript, bool, []string){
	"target": usage("OWNER/REPO DIR|- [archived] [read] [topic=NAME...]", addTarget),
	"label":  usage("TITLE LABEL...", addLabelled),
	"branch": usage("NAME DIR", pushBranch),
}

// addTarget adds a repository with the branches of a checkout, or, for -, with those that the first one
// has: target OWNER/REPO DIR|- [archived] [read] [topic=NAME...].
func addTarget(ts *testscript.TestScript, args []string) {
	w := worldOf(ts)
	owner, name, _ := strings.Cut(args[0], "/")
	var r *forgetest.Repository
	if args[1] == "-" {
		r = w.forge.AddTwin(w.repo, owner, name)
	} else {
		r = w.forge.AddRepository(owner, name)
		r.Receive(ts.MkAbs(args[1]))
	}
	for _, word := range args[2:] {
		topic, isTopic := strings.CutPrefix(word, "topic=")
		switch {
		case isTopic:
			r.Topics = append(r.Topics, topic)
		case word == "archived":
			r.Archived = true
		case word == "read":
			r.Permissions = map[string]string{"octocat": "read"}
		default:
			ts.Fatalf("target: what is %s?", word)
		}
	}
}

// addLabelled adds an issue with labels to the first repository: label TITLE LABEL...
func addLabelled(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.AddIssue(forgetest.Issue{Title: args[0], Labels: args[1:]})
}

// pushBranch pushes the end of a checkout to a branch of the first repository: branch NAME DIR.
func pushBranch(ts *testscript.TestScript, args []string) {
	git(ts, ts.MkAbs(args[1]), "push", "--quiet", "--force", worldOf(ts).repo.Dir, "HEAD:refs/heads/"+args[0])
}
