package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
)

// eventCommands make the forge's issues into events, as GitHub Actions gives
// them to a step.
var eventCommands = map[string]func(*testscript.TestScript, bool, []string){
	"event":    makeEvent,
	"role":     usage("LOGIN ROLE", giveRole),
	"rule":     usage("TYPE BYPASS [BRANCHES]", addRule),
	"edit":     usage("NUMBER TITLE BODY STATE", editIssue),
	"remark":   usage("NUMBER LOGIN ASSOCIATION TEXT", addRemark),
	"onto":     usage("NUMBER LOGIN PATH TEXT", addOnto),
	"comments": usage("NUMBER", showComments),
	"propose":  usage("BRANCH [BASE]", proposePull),
	"output":   negatable("NAME PATTERN", checkOutput),
	"harmless": usage("PATTERN", checkHarmless),
}

type object = map[string]any

// events are the payloads by the first argument of event, with how many
// arguments follow.
var events = map[string]struct {
	name string
	args int
	make func(ts *testscript.TestScript, args []string) object
}{
	"labeled": {"issues", 3, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "labeled", "issue": asked(ts, "issues", a[0]), "label": object{"name": a[1]}, "sender": account(a[2])}
	}},
	"assigned": {"issues", 3, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "assigned", "issue": asked(ts, "issues", a[0]), "assignee": account(a[1]), "sender": account(a[2])}
	}},
	"comment": {"issue_comment", 3, func(ts *testscript.TestScript, a []string) object {
		comment := addComment(ts, a[0], a[1], "NONE", a[2])
		return object{"action": "created", "issue": asked(ts, "issues", a[0]), "comment": comment, "sender": account(a[1])}
	}},
	"review": {"pull_request_review", 4, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "submitted", "pull_request": asked(ts, "pulls", a[0]), "sender": account(a[1]), "review": object{
			"id": 77, "user": account(a[1]), "state": a[2], "body": a[3], "submitted_at": cmp.Or(ts.Getenv("REVIEWED"), "2026-02-01T00:00:00Z"),
		}}
	}},
	"line": {"pull_request_review_comment", 5, func(ts *testscript.TestScript, a []string) object {
		line := integer(ts, a[3])
		return object{"action": "created", "pull_request": asked(ts, "pulls", a[0]), "sender": account(a[1]), "comment": object{
			"id": 78, "user": account(a[1]), "path": a[2], "line": line, "diff_hunk": "@@ -1 +1 @@", "body": a[4], "created_at": "2026-02-01T00:00:00Z",
		}}
	}},
	"opened": {"pull_request_target", 2, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "opened", "pull_request": asked(ts, "pulls", a[0]), "sender": account(a[1])}
	}},
	"pulled": {"pull_request", 3, func(ts *testscript.TestScript, a []string) object {
		return object{"action": a[1], "pull_request": asked(ts, "pulls", a[0]), "sender": account(a[2])}
	}},
	"reported": {"issues", 2, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "opened", "issue": asked(ts, "issues", a[0]), "sender": account(a[1])}
	}},
	"ran": {"workflow_run", 2, func(_ *testscript.TestScript, a []string) object {
		return object{"action": "completed", "workflow_run": object{"head_repository": object{"full_name": a[0]}}, "sender": account(a[1])}
	}},
	"forked": {"workflow_run", 1, func(_ *testscript.TestScript, a []string) object {
		return object{"action": "completed", "workflow_run": object{"head_repository": object{"full_name": a[0]}, "conclusion": "failure"}, "sender": account("stranger")}
	}},
	"workflow": {"workflow_run", 1, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "completed", "workflow_run": ask(ts, http.MethodGet, "actions/runs/"+a[0], nil), "sender": account("octocat")}
	}},
	"suite": {"check_suite", 3, func(ts *testscript.TestScript, a []string) object {
		return object{"action": "completed", "sender": account("octocat"), "check_suite": object{
			"id": 5, "head_branch": a[0], "head_sha": tipOf(ts, a[0]), "conclusion": a[1], "app": object{"slug": a[2]}, "pull_requests": []object{},
		}}
	}},
	"starred": {"watch", 1, func(_ *testscript.TestScript, a []string) object {
		return object{"action": "started", "sender": account(a[0])}
	}},
	"dispatch": {"workflow_dispatch", 1, func(_ *testscript.TestScript, a []string) object {
		key, value, _ := strings.Cut(a[0], "=")
		return object{"inputs": object{key: value}, "sender": account("octocat")}
	}},
	"repository_dispatch": {"repository_dispatch", 1, func(_ *testscript.TestScript, a []string) object {
		key, value, _ := strings.Cut(a[0], "=")
		return object{"action": "go", "client_payload": object{key: value}, "sender": account("octocat")}
	}},
	"schedule": {"schedule", 0, func(*testscript.TestScript, []string) object { return object{"schedule": "0 3 * * *"} }},
	"push":     {"push", 0, func(*testscript.TestScript, []string) object { return object{"ref": "refs/heads/main"} }},
}

// makeEvent writes an event and sets the variables of Actions that tell of it:
// event KIND ARGUMENT….
func makeEvent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || events[args[0]].make == nil || len(args)-1 != events[args[0]].args {
		ts.Fatalf("usage: event KIND ARGUMENT…")
	}
	kind := events[args[0]]
	raw, err := json.Marshal(kind.make(ts, args[1:]))
	ts.Check(err)
	path := ts.MkAbs("event.json")
	ts.Check(os.WriteFile(path, raw, 0o600))
	temp := ts.MkAbs("runner.temp")
	ts.Check(os.MkdirAll(temp, 0o755))
	repo := worldOf(ts).repo
	for name, value := range map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": kind.name, "GITHUB_EVENT_PATH": path, "GITHUB_REPOSITORY": repo.Owner + "/" + repo.Name,
		"GITHUB_OUTPUT": filepath.Join(temp, "output"), "GITHUB_STEP_SUMMARY": filepath.Join(temp, "summary"), "RUNNER_TEMP": temp,
	} {
		ts.Setenv(name, value)
	}
	for _, name := range []string{"output", "summary"} {
		ts.Check(os.WriteFile(filepath.Join(temp, name), nil, 0o600))
	}
}

func account(login string) object {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return object{"login": login, "id": 1, "type": kind}
}

// asked is what the forge says of an issue or a pull request.
func asked(ts *testscript.TestScript, kind, number string) object {
	return ask(ts, http.MethodGet, kind+"/"+number, nil)
}

func ask(ts *testscript.TestScript, method, path string, body any) object {
	w := worldOf(ts)
	sent, err := json.Marshal(body)
	ts.Check(err)
	request, err := http.NewRequest(method, fmt.Sprintf("%s/repos/%s/%s/%s", w.forge.APIURL, w.repo.Owner, w.repo.Name, path), bytes.NewReader(sent))
	ts.Check(err)
	request.Header.Set("Authorization", "Bearer "+w.forge.Token)
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	ts.Check(err)
	var found object
	ts.Check(json.Unmarshal(raw, &found))
	if response.StatusCode >= http.StatusBadRequest {
		ts.Fatalf("%s: %s", path, raw)
	}
	return found
}

// proposePull opens a pull request as a person does: propose BRANCH [BASE].
func proposePull(ts *testscript.TestScript, args []string) {
	base := append(args, "main")[1]
	ask(ts, http.MethodPost, "pulls", object{"title": "By hand", "body": "Shouting is better.", "head": args[0], "base": base})
}

func addComment(ts *testscript.TestScript, issue, login, association, body string) object {
	body = strings.ReplaceAll(body, `\n`, "\n")
	id := worldOf(ts).repo.AddComment(integer(ts, issue), forgetest.Comment{Author: forgetest.User{Login: login}, Association: association, Body: body})
	updated := asked(ts, "issues", issue)["updated_at"]
	return object{"id": id, "body": body, "user": account(login), "created_at": updated}
}

// giveRole says what an account may do: role LOGIN ROLE.
func giveRole(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.SetRole(args[0], args[1])
}

// addRule adds a rule on branches, in a ruleset of its own: rule TYPE BYPASS [BRANCHES].
func addRule(ts *testscript.TestScript, args []string) {
	r := worldOf(ts).repo
	r.Rules = append(r.Rules, forgetest.Rule{Type: args[0], Bypass: args[1], Branches: strings.Join(args[2:], ""), Ruleset: "Only people"})
}

// editIssue changes an issue as its author does: edit NUMBER TITLE BODY STATE.
func editIssue(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.SetIssue(integer(ts, args[0]), func(i *forgetest.Issue) { i.Title, i.Body, i.State = args[1], args[2], args[3] })
}

// addRemark adds a comment: remark NUMBER LOGIN ASSOCIATION TEXT.
func addRemark(ts *testscript.TestScript, args []string) {
	addComment(ts, args[0], args[1], args[2], args[3])
}

// addOnto adds a comment on a line to the next review: onto NUMBER LOGIN PATH TEXT.
func addOnto(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.AddReviewComment(integer(ts, args[0]), forgetest.ReviewComment{
		ReviewID: 77, Author: forgetest.User{Login: args[1]}, Path: args[2], Line: 1, DiffHunk: "@@ -1 +1 @@", Body: args[3],
	})
}

// showComments prints the comments of an issue: comments NUMBER.
func showComments(ts *testscript.TestScript, args []string) {
	comments := worldOf(ts).repo.Comments(integer(ts, args[0]))
	fmt.Fprintf(ts.Stdout(), "comments: %d\n", len(comments))
	for _, c := range comments {
		fmt.Fprintf(ts.Stdout(), "%s: %s\n", c.Author.Login, c.Body)
	}
}

// checkOutput compares an output of the step, read as the runner reads it:
// output NAME PATTERN.
func checkOutput(ts *testscript.TestScript, neg bool, args []string) {
	found := map[string]string{}
	for rest := ts.ReadFile(ts.Getenv("GITHUB_OUTPUT")); rest != ""; {
		head, after, _ := strings.Cut(rest, "\n")
		name, delimiter, isLong := strings.Cut(head, "<<")
		value, more, ended := strings.Cut("\n"+after, "\n"+delimiter+"\n")
		if !isLong || !ended {
			ts.Fatalf("%q begins no output", head)
		}
		found[name], rest = strings.TrimPrefix(value, "\n"), more
	}
	value, set := found[args[0]]
	if matched := set && regexp.MustCompile("^(?s:"+args[1]+")$").MatchString(value); matched == neg {
		ts.Fatalf("the output %s is %q (set: %v), want %q (not: %v)", args[0], value, set, args[1], neg)
	}
	if len(found) != len(progress.Outputs) {
		ts.Fatalf("the outputs are %v", slices.Sorted(maps.Keys(found)))
	}
}

// ours are the workflow commands that agent-ci gives.
var ours = regexp.MustCompile(`^::(add-mask|group|endgroup|error|warning|notice)[ :]`)

// checkHarmless looks for workflow commands in what the last command printed:
// harmless FORBIDDEN, a pattern of commands that agent-ci did not give itself.
func checkHarmless(ts *testscript.TestScript, args []string) {
	forbidden := regexp.MustCompile(args[0])
	for _, line := range regexp.MustCompile("[\r\n]+").Split(ts.ReadFile("stdout")+"\n"+ts.ReadFile("stderr"), -1) {
		isCommand := strings.HasPrefix(strings.TrimSpace(line), "::")
		if isCommand && (!ours.MatchString(line) || forbidden.MatchString(line)) || strings.Contains(line, "##[") {
			ts.Fatalf("the runner takes this for a command: %q", line)
		}
	}
}
