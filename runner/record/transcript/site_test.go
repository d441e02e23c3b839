package transcript_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestSiteLinksOnlyValidAddresses(t *testing.T) {
	const sha = "0123456789abcdef0123456789abcdef01234567"
	site := transcript.Site{Server: "https://github.com", Repository: "octo/widgets"}
	for _, c := range []struct{ what, got, want string }{
		{"the repository", site.Home(), "https://github.com/octo/widgets"},
		{"no server", transcript.Site{Repository: "octo/widgets"}.Home(), ""},
		{"an issue", site.Issue("octo/gadgets#7"), "https://github.com/octo/gadgets/issues/7"},
		{"no issue", site.Issue("octo/gadgets#7](https://evil.example)"), ""},
		{"a pull request", site.Pull(2), "https://github.com/octo/widgets/pull/2"},
		{"no pull request", site.Pull(0), ""},
		{"a commit", site.Commit(sha), "https://github.com/octo/widgets/commit/" + sha},
		{"a short commit", site.Commit(sha[:12]), ""},
		{"a branch for a commit", site.Commit("main"), ""},
		{"a run", site.Page("https://github.com/octo/widgets/actions/runs/7/attempts/2#artifacts"), "https://github.com/octo/widgets/actions/runs/7/attempts/2#artifacts"},
		{"a run elsewhere", site.Page("https://evil.example/octo/widgets/actions/runs/7"), ""},
		{"a run with more behind it", site.Page("https://github.com/octo/widgets/actions/runs/7)[x](https://"), ""},
		{"a run and a mention", site.Page("https://github.com/octo/widgets/actions/runs/7\n@octocat"), ""},
		{"a script for a page", transcript.Site{}.Page("javascript:alert(1)"), ""},
		{"another page", site.Page("https://github.com/octo/widgets/settings"), ""},
		{"any server, where none is known", transcript.Site{}.Page("https://git.example.org/octo/widgets/pull/7"), "https://git.example.org/octo/widgets/pull/7"},
		{"a port of any server", transcript.Site{}.Page("https://ghe.example:8443/o/r/actions/runs/1"), "https://ghe.example:8443/o/r/actions/runs/1"},
		{"a server without encryption, where none is known", transcript.Site{}.Page("http://git.example.org/octo/widgets/pull/7"), ""},
		{"a server in a test", transcript.Site{Server: "http://127.0.0.1:8080"}.Page("http://127.0.0.1:8080/o/r/pull/1"), "http://127.0.0.1:8080/o/r/pull/1"},
		{"no repository", transcript.Site{Server: "https://github.com"}.Pull(2), ""},
		{"a server that is none", transcript.Site{Server: "javascript:alert(1)//", Repository: "octo/widgets"}.Pull(2), ""},
		{"a repository that is none", transcript.Site{Server: "https://github.com", Repository: "octo/widgets) ["}.Commit(sha), ""},
	} {
		must.Same(t, c.want, c.got, c.what, "has the address")
	}
}

func TestFindsSiteInTranscript(t *testing.T) {
	for name, c := range map[string]struct {
		view transcript.View
		want string
	}{
		"by the workflow's run":  {transcript.View{Started: transcript.RunStarted{RunPage: "https://git.example.org/o/r/actions/runs/7"}}, "https://git.example.org"},
		"by the issue":           {transcript.View{Task: transcript.Task{URL: "https://git.example.org/o/r/issues/7"}}, "https://git.example.org"},
		"by the pull request":    {transcript.View{ChangeState: transcript.ChangeState{PublishSteps: []transcript.Publish{{}, {URL: "https://git.example.org/o/r/pull/7"}}}}, "https://git.example.org"},
		"nowhere":                {transcript.View{}, ""},
		"not in what is no page": {transcript.View{Task: transcript.Task{URL: "https://evil.example/" + strings.Repeat("x", 9)}}, ""},
	} {
		must.Same(t, c.want, c.view.Site().Server, name)
	}
}
