package artifact

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestParsesRunAddresses(t *testing.T) {
	const server = "https://github.com"
	run := artifactRef{Repository: "octo/widgets", RunID: 7}
	of := func(w artifactRef, id int64) artifactRef { w.ID = id; return w }
	for words, want := range map[string]artifactRef{
		"octo/widgets 7": run,
		"https://github.com/octo/widgets/actions/runs/7":                           run,
		"github.com/octo/widgets/actions/runs/7":                                   run,
		"<https://GitHub.com/octo/widgets/actions/runs/7>":                         run,
		"https://github.com/octo/widgets/actions/runs/7/attempts/2#artifacts":      run,
		"https://github.com/octo/widgets/actions/runs/7/job/99?pr=3#step:4:5":      run,
		"https://github.com/octo/widgets/actions/runs/7/artifacts/42":              of(run, 42),
		"octo/widgets https://github.com/octo/widgets/actions/runs/7":              run,
		"Octo/Widgets https://github.com/octo/widgets/actions/runs/7/artifacts/42": of(run, 42),
	} {
		if got, err := parseRef(server, strings.Fields(words)...); err != nil || got != want {
			t.Errorf("%s: %+v, %v", words, got, err)
		}
	}
	for words, says := range map[string]string{
		"octo/widgets":                           "no address of a workflow's run",
		"https://github.com/octo/widgets/pull/7": "no address of a workflow's run",
		"octo/widgets seven":                     "no run of a workflow",
		"octo/widgets -7":                        "no run of a workflow",
		"octo/widgets 99999999999999999999":      "no run of a workflow",
		"octo/gadgets https://github.com/octo/widgets/actions/runs/7": "is one of octo/widgets",
		"https://evil.example/octo/widgets/actions/runs/7":            "set GITHUB_API_URL",
		"https://github.com@evil.example/octo/widgets/actions/runs/7": "no address",
		"https://github.com/octo/widgets/actions/runs/7x":             "no address of a workflow's run",
		"https://github.com/a/b/c/actions/runs/7":                     "no address of a workflow's run",
		"https://github.com/octo/widgets/actions/runs/%zz":            "no address",
	} {
		must.Fail(t, says, must.Err(parseRef(server, strings.Fields(words)...)), words)
	}
	must.Same(t, run, must.Get(parseRef("https://ghe.example", "https://ghe.example/octo/widgets/actions/runs/7"))(t), "an Enterprise Server")
}
