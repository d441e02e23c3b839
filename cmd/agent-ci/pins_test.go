package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inEvent lets the second half run in the workflow of an event.
func (b *bundle) inEvent(name string, payload any) {
	b.t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.publishing.dir, "event.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.env = append(slices.Clone(b.env), "GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=octo/widgets", "GITHUB_EVENT_NAME="+name, "GITHUB_EVENT_PATH="+path)
}

// claims makes the bundle one of another task.
func (b bundle) claims(key, branch, issue string) {
	b.t.Helper()
	b.alter("run.started", func(data map[string]any) { data["key"] = key })
	b.alter("workspace", func(data map[string]any) { data["branch"] = branch })
	b.alter("task", func(data map[string]any) { data["issue"] = issue })
}

// release makes a branch beside main, which the bundle names as its base.
func (b bundle) release() {
	b.t.Helper()
	b.git(b.repo.Dir, "branch", "release", "main")
	b.alter("workspace", func(data map[string]any) { data["base"] = "release" })
}

// opened makes the pull request of an earlier run.
func (b bundle) opened(head, base, body string) {
	b.t.Helper()
	seed := filepath.Join(b.publishing.dir, "seed")
	b.git(seed, "checkout", "--quiet", "-b", head)
	b.git(seed, "commit", "--quiet", "--allow-empty", "--message=change\n\nAgent-CI-Run: r\nAgent-CI-Base: "+b.git(b.repo.Dir, "rev-parse", "main"))
	b.git(seed, "push", "--quiet", b.repo.Dir, head)
	sent, err := json.Marshal(object{"title": "Theirs", "body": body, "head": head, "base": base})
	if err != nil {
		b.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.forge.APIURL+"/repos/octo/widgets/pulls", bytes.NewReader(sent))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.forge.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		b.t.Fatal(response.Status)
	}
}

// ofRun is the event of a first half's end, for a branch of that repository.
func ofRun(head string) object {
	return object{"action": "completed", "workflow_run": object{"head_repository": object{"full_name": head}}}
}

// TestBundleIsPinned publishes bundles that are sound in themselves, where the
// second half knows better, or does not.
func TestBundleIsPinned(t *testing.T) {
	t.Parallel()
	labeled := object{"action": "labeled", "issue": object{"number": 7}}
	dispatched := object{"inputs": object{"issue": "7"}}
	for _, c := range []struct {
		name string
		make func(*bundle)
		args []string
		want string
	}{
		{
			"another base", func(b *bundle) { b.release() }, nil,
			"invalid_input/bundle: The bundle cannot be published: its base is release, and the default branch is main; if the pull request is to go to release, say so to this half with --set repository.base=release",
		},
		{"another base that a flag names", func(b *bundle) { b.release() }, []string{"--set", "repository.base=release"}, "changed/pull_request: "},
		{"another base that the environment names", func(b *bundle) {
			b.release()
			b.env = append(slices.Clone(b.env), "AGENT_CI_REPOSITORY_BASE=release")
		}, nil, "changed/pull_request: "},
		{"another base that the job file names", func(b *bundle) {
			b.release()
			b.write("job.yml", "version: 1\nrepository: {base: release}\n")
		}, []string{"--job", "job.yml"}, "changed/pull_request: "},
		{"the default branch where another is named", func(*bundle) {}, []string{"--set", "repository.base=release"}, "invalid_input/bundle: "},
		{"the base of the event's pull request", func(b *bundle) {
			b.release()
			b.opened("agent-ci/task", "release", "")
			b.inEvent("issue_comment", object{"action": "created", "issue": object{"number": 1, "pull_request": object{}}, "comment": object{"body": "/agent-ci"}})
		}, nil, "changed/pull_request: "},
		{"another branch than the event's pull request", func(b *bundle) {
			b.opened("agent-ci/else", "main", "")
			b.inEvent("pull_request_review", object{"action": "submitted", "pull_request": object{"number": 1}})
		}, nil, "invalid_input/bundle: "},
		{
			"a branch that is not the task's", func(b *bundle) { b.claims("task", "agent-ci/else", "") }, nil,
			"invalid_input/bundle: The bundle cannot be published: its branch agent-ci/else is not agent-ci/task",
		},
		{"a branch that a flag names", func(b *bundle) { b.claims("task", "agent-ci/else", "") }, []string{"--set", "pull_request.branch=agent-ci/else"}, "changed/pull_request: "},
		{"the event's issue", func(b *bundle) {
			b.claims("issue-7", "agent-ci/issue-7", "octo/widgets#7")
			b.inEvent("issues", labeled)
		}, nil, "changed/pull_request: "},
		{"the event's issue, of a job with a name", func(b *bundle) {
			b.claims("lint-issue-7", "agent-ci/lint-issue-7", "octo/widgets#7")
			b.inEvent("issues", labeled)
		}, nil, "changed/pull_request: "},
		{"another job's name", func(b *bundle) {
			b.claims("lint-issue-7", "agent-ci/lint-issue-7", "octo/widgets#7")
			b.inEvent("issues", labeled)
		}, []string{"--set", "name=docs"}, "invalid_input/bundle: "},
		{"another issue than the event's", func(b *bundle) {
			b.claims("issue-8", "agent-ci/issue-8", "octo/widgets#8")
			b.inEvent("issues", labeled)
		}, nil, "invalid_input/bundle: The bundle cannot be published: it is of another task (agent-ci/issue-8) than the event, which is about issue octo/widgets#7"},
		{"another issue's branch", func(b *bundle) {
			b.claims("issue-8", "agent-ci/issue-8", "octo/widgets#7")
			b.inEvent("issues", labeled)
		}, nil, "invalid_input/bundle: "},
		{"another issue to close", func(b *bundle) {
			b.claims("issue-7", "agent-ci/issue-7", "octo/widgets#8")
			b.inEvent("issues", labeled)
		}, nil, "invalid_input/bundle: "},
		{"another issue than was dispatched", func(b *bundle) {
			b.claims("issue-8", "agent-ci/issue-8", "octo/widgets#8")
			b.inEvent("workflow_dispatch", dispatched)
		}, nil, "invalid_input/bundle: "},
		{"a prompt instead of the event's issue", func(b *bundle) { b.inEvent("issues", labeled) }, nil, "invalid_input/bundle: "},
		{"a prompt that this half knows", func(b *bundle) { b.inEvent("issues", labeled) }, []string{"--set", "task.prompt=x"}, "changed/pull_request: "},
		{"another job's name, where the task is the job's own", func(*bundle) {}, []string{"--set", "name=lint"}, "invalid_input/bundle: The bundle cannot be published: it is of another task (agent-ci/task) than the job of this half"},
		{"a longer name", func(b *bundle) { b.claims("task-issue-7x", "agent-ci/task-issue-7x", "") }, []string{"--set", "name=task"}, "invalid_input/bundle: "},
		{"the job's name", func(*bundle) {}, []string{"--set", "name=task"}, "changed/pull_request: "},
		{"the job's name and an issue", func(b *bundle) { b.claims("task-issue-7", "agent-ci/task-issue-7", "octo/widgets#7") }, []string{"--set", "name=task"}, "changed/pull_request: "},
		{"another job's name, with a branch that a flag names", func(*bundle) {}, []string{"--set", "name=lint", "--set", "pull_request.branch=agent-ci/task"}, "changed/pull_request: "},
		{"the job's own issue, of a run that an event started", func(b *bundle) {
			b.claims("issue-7", "agent-ci/issue-7", "octo/widgets#7")
			b.inEvent("workflow_run", ofRun("octo/widgets"))
		}, []string{"--set", "task.issue=7"}, "changed/pull_request: "},
		{"another issue than the job's own", func(b *bundle) {
			b.claims("issue-8", "agent-ci/issue-8", "octo/widgets#8")
			b.inEvent("workflow_run", ofRun("octo/widgets"))
			b.env = append(b.env, "AGENT_CI_TASK_ISSUE=7") // the action's input
		}, nil, "invalid_input/bundle: The bundle cannot be published: it is of another task (agent-ci/issue-8) than this half's own, which is issue octo/widgets#7"},
		{"another issue's branch than that of the job's own", func(b *bundle) { b.claims("issue-8", "agent-ci/issue-8", "octo/widgets#7") }, []string{"--set", "task.issue=octo/widgets#7"}, "invalid_input/bundle: "},
		{"another repository's issue than the job's own", func(b *bundle) { b.claims("issue-7", "agent-ci/issue-7", "octo/gadgets#7") }, []string{"--set", "task.issue=7"}, "invalid_input/bundle: "},
		{"a job with a name and an issue", func(b *bundle) { b.alter("task", func(data map[string]any) { data["issue"] = "octo/widgets#7" }) }, []string{"--set", "name=task", "--set", "task.issue=7"}, "changed/pull_request: "},
		{"a run of this repository", func(b *bundle) { b.inEvent("workflow_run", ofRun("octo/widgets")) }, nil, "changed/pull_request: "},
		{"a run of a fork", func(b *bundle) { b.inEvent("workflow_run", ofRun("mallory/widgets")) }, []string{"--set", "trust.forks=true"}, "skipped/fork: "},
		{"a run of a fork that is gone", func(b *bundle) { b.inEvent("workflow_run", object{"workflow_run": object{}}) }, nil, "skipped/fork: "},
		{"an event without a task", func(b *bundle) { b.inEvent("push", object{}) }, nil, "changed/pull_request: "},
		{
			"the pull request of another issue", func(b *bundle) { b.opened("agent-ci/task", "main", "Theirs.\n\nFixes #9\n") }, nil,
			"conflict/other_task: Pull request #1 was made for issue #9, and the bundle is for another task",
		},
		{
			"the pull request of another issue, whose place it takes", func(b *bundle) { b.opened("agent-ci/task", "main", "Theirs.\n\nFixes #9\n") },
			[]string{"--set", "pull_request.branch=agent-ci/task"},
			"changed/pull_request: Pull request #1 was updated",
		},
		{"the pull request of the same issue", func(b *bundle) {
			b.alter("task", func(data map[string]any) { data["issue"] = "octo/widgets#9" })
			b.opened("agent-ci/task", "main", "Ours.\n\nFixes #9\n")
		}, nil, "changed/pull_request: Pull request #1 was updated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBundle(t)
			c.make(&b)
			before := b.git(b.repo.Dir, "for-each-ref")
			out := b.publish(c.args...)
			if !strings.Contains("\n"+out, "\n"+c.want) {
				t.Errorf("the bundle ended in %s, want %s", out, c.want)
			}
			after := b.git(b.repo.Dir, "for-each-ref")
			if published := strings.HasPrefix(c.want, "changed/"); published == (after == before) {
				t.Errorf("branches: %s, before %s", after, before)
			}
		})
	}
}
