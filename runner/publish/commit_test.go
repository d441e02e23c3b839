package publish

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestCommitMessage(t *testing.T) {
	t.Parallel()
	p := Proposal{
		RunID: "run-1", Base: gitops.Base{SHA: "base-1"}, Summary: "Greets.\n\n@everyone: done.",
		Task: intake.Task{Issue: &form.Issue{Repository: "octo/widgets", Number: 7}, Task: transcript.Task{InputDigest: "input-1"}},
	}
	want := "Greet\n\nGreets.\n\n" + "SUMMARY" + "\n\nFixes #7\n\n" +
		"Agent-CI-Run: run-1\nAgent-CI-Base: base-1\nAgent-CI-Transcript: head-1\nAgent-CI-Input: input-1\nCo-authored-by: Ada <1+Ada@users.noreply.github.com>\n"
	got := p.commitMessage("Greet", "head-1", "octo/widgets", "Ada <1+Ada@users.noreply.github.com>")
	paragraphs := strings.Split(got, "\n\n")
	if len(paragraphs) > 2 {
		want = strings.Replace(want, "SUMMARY", paragraphs[2], 1) // how names are made harmless is markdown's
	}
	must.Same(t, want, got)
	p = Proposal{RunID: "run-1", Base: gitops.Base{SHA: "base-1"}, Summary: " Greet. ", Task: intake.Task{Pull: personsPull}}
	must.Same(t, "Greet\n\nAgent-CI-Run: run-1\nAgent-CI-Transcript: head-1\n", p.commitMessage("Greet", "head-1", "octo/widgets", ""), "of a person's pull request")
}

func TestCoAuthors(t *testing.T) {
	t.Parallel()
	author := &forge.User{Login: "grace", ID: 2}
	for name, test := range map[string]struct {
		task   intake.Task
		server string
		want   string
	}{
		"nobody":            {},
		"who asked":         {task: intake.Task{Task: transcript.Task{Actor: "ada", ActorID: 1}, Author: author}, want: "ada <1+ada@users.noreply.github.com>"},
		"who wrote it":      {task: intake.Task{Author: author}, want: "grace <2+grace@users.noreply.github.com>"},
		"without a number":  {task: intake.Task{Task: transcript.Task{Actor: "ada"}, Author: author}, want: "grace <2+grace@users.noreply.github.com>"},
		"a bot asked":       {task: intake.Task{Task: transcript.Task{Actor: "helper[bot]", ActorID: 9}}},
		"a bot wrote it":    {task: intake.Task{Author: &forge.User{Login: "helper", ID: 9, Bot: true}}},
		"on another server": {task: intake.Task{Author: author}, server: "http://ghe.example.com:8443", want: "grace <2+grace@users.noreply.ghe.example.com>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Publisher{Project: Project{ServerURL: "https://github.com"}}
			if test.server != "" {
				m.ServerURL = test.server
			}
			p := &Proposal{Task: test.task, Job: &job.Job{}}
			must.Same(t, "", m.coAuthorOf(p), "not asked for")
			p.Job.PullRequest.Commit.CoAuthor = true
			must.Same(t, test.want, m.coAuthorOf(p))
		})
	}
}

func TestSignatureComesFromEnvironment(t *testing.T) {
	t.Parallel()
	m := Publisher{Env: settings.Environment{"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.invalid", "GIT_COMMITTER_NAME=Robot"}}
	when := time.Unix(7, 0)
	for role, want := range map[string]gitops.Signature{
		"AUTHOR": {Name: "Ada", Email: "ada@example.invalid", When: when}, "COMMITTER": {Name: "Robot", Email: "agent-ci@noreply.invalid", When: when},
	} {
		options := m.commitOptions("", when)
		must.Same(t, want, map[string]gitops.Signature{"AUTHOR": options.Author, "COMMITTER": options.Committer}[role], role)
	}
}

// sshKey makes a key and gives its path.
func sshKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", path).CombinedOutput(); err != nil {
		t.Skipf("there is no ssh-keygen: %v\n%s", err, out)
	}
	return path
}

func TestReadsSigningKey(t *testing.T) {
	t.Parallel()
	path := sshKey(t)
	pem := must.Get(os.ReadFile(path))(t)
	sign := job.Commit{Sign: signSSH, KeyEnv: "KEY"}
	for name, test := range map[string]struct {
		commit job.Commit
		value  string
		key    bool
		words  string
	}{
		"in the variable": {commit: sign, value: strings.TrimRight(string(pem), "\n"), key: true},
		"in a file":       {commit: sign, value: path, key: true},
		"not asked for":   {commit: job.Commit{Sign: signGitHub, KeyEnv: "KEY"}, value: path},
		"no variable":     {commit: job.Commit{Sign: signSSH}, value: path, words: "has no key"},
		"nothing in it":   {commit: sign, words: "has no key"},
		"no such file":    {commit: sign, value: path + "-gone", words: "the file that KEY names cannot be read"},
		"another text":    {commit: sign, value: "hunter2", words: "what KEY holds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := ReadKey(t.Context(), settings.Environment{"KEY=" + test.value}, test.commit)
			if (key != nil) != test.key || test.words == "" && err != nil {
				t.Fatalf("got %v, %v", key, err)
			}
			if test.words != "" {
				must.Lack(t, outcometest.Want(t, err, "signing_key", test.words).Message, "hunter2")
			}
		})
	}
}

// What the forge cannot sign is committed here, and the pull request says so.
func TestWarnsOfUnsignedCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forge.On(http.MethodPost, "/repos/octo/widgets/git/trees", forgetest.Reply{Status: http.StatusCreated, Body: `{"sha": "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "tree": []}`}, 1)
	for words, to := range map[string]func() Destination{
		"only GitHub signs it (pull_request.commit.sign: github), and it was made on this machine": func() Destination { return w.toLocal() },
		"GitHub made another tree of the change (4b825dc642cb)":                                    func() Destination { return w.toForge() },
	} {
		w.git(w.dir, "checkout", "--quiet", "main")
		w.run("20260301T100000Z-00000002")
		p := w.proposal("hello.txt", words)
		p.Job.PullRequest.Commit.Sign = signGitHub
		out := w.publish(to(), p)
		if warnings := w.Record.Warnings(); out.Commit == "" || len(warnings) != 1 || warnings[0].Code != "unsigned" || !strings.Contains(warnings[0].Message, words) {
			t.Errorf("%+v: %v", out, warnings)
		}
	}
}

// A branch that somebody made meanwhile is not moved.
func TestSignedPushMovesNoForeignBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("hello.txt", "Hello.\n")
	p.Job.PullRequest.Commit.Sign = signGitHub
	theirs := w.onForge(taskBranch, "theirs.txt", "Theirs.\n", "By hand")
	var out Publication
	outcometest.Want(t, w.toForge().commitAndPush(t.Context(), &p, nil, &out), "foreign_commit")
	must.Same(t, theirs, w.tipOn(w.repo.Dir, taskBranch), "publication", out)
	must.Same(t, "", out.Commit, "publication", out)
	no := forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "no"}`}
	w.forge.On(http.MethodPost, "/repos/octo/widgets/git/refs", no, 1)
	outcometest.Want(t, w.toForge().commitAndPush(t.Context(), &p, nil, &out), "forbidden")
	for _, path := range []string{"blobs", "commits"} {
		w.forge.On(http.MethodPost, "/repos/octo/widgets/git/"+path, no, 1)
		outcometest.Want(t, w.toForge().commitAndPush(t.Context(), &p, nil, &out), "forbidden")
	}
}

func TestTreeEdits(t *testing.T) {
	t.Parallel()
	file := func(path, id string) changeset.File {
		mode := "100644"
		if id == "" {
			mode = ""
		}
		return changeset.File{Path: path, NewMode: mode, NewID: id}
	}
	got := treeEdits([]changeset.File{
		file("gone", ""), file("folder", "1"), file("folder/old", ""), file("file", ""), file("file/new", "2"), file("a/b/c", "3"),
	})
	want := []forge.TreeEdit{
		{Path: "gone"}, {Path: "folder", Mode: "100644", ID: "1"}, {Path: "file/new", Mode: "100644", ID: "2"}, {Path: "a/b/c", Mode: "100644", ID: "3"},
	}
	must.Same(t, want, got)
}

func TestFindsPullRequestTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		files map[string]string
		want  string
		warns bool
	}{
		"none":              {},
		"at the top":        {files: map[string]string{"PULL_REQUEST_TEMPLATE.md": "Top."}, want: "Top."},
		"below .github":     {files: map[string]string{"docs/pull_request_template.md": "Docs.", ".github/Pull_Request_Template.txt": "Here."}, want: "Here."},
		"a folder of that":  {files: map[string]string{".github/pull_request_template/a.md": "A.", "docs/pull_request_template": "Docs."}, want: "Docs."},
		"longer than read":  {files: map[string]string{"pull_request_template": string(bytes.Repeat([]byte("x"), maxTemplate+1))}, warns: true},
		"in another folder": {files: map[string]string{"src/pull_request_template.md": "Src."}},
	} {
		w.git(w.dir, "rm", "--quiet", "-r", "--ignore-unmatch", ".")
		for path, text := range test.files {
			w.put(path, text)
		}
		w.git(w.dir, "add", "--all")
		w.git(w.dir, "commit", "--quiet", "--allow-empty", "--message=Templates")
		w.run("20260301T100000Z-00000002")
		must.Same(t, test.want, w.pullTemplate(), name, w.Record.Warnings())
		must.Same(t, test.warns, w.warned("pull_request_template"), name, w.Record.Warnings())
	}
	must.Same(t, "", w.BodyOptions(&Proposal{Job: w.job(), Task: intake.Task{Pull: personsPull}}).Template, "a comment on a person's pull request")
}
