package body

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestSentencesLinkOnlyRunObjects(t *testing.T) {
	own := sections.Links{
		Site: transcript.Site{Server: "https://github.com", Repository: "octo/widgets"}, Issue: "octo/widgets#1", Pulls: []int{2},
		Commits: []string{strings.Repeat("c", 40)},
	}
	for s, want := range map[string]string{
		"Pull request #2 was created: https://github.com/octo/widgets/pull/2.":                            "[Pull request #2](https://github.com/octo/widgets/pull/2) was created.",
		"Pull request #9 is open for this task already: https://github.com/octo/widgets/pull/9; merge it": "[Pull request #9](https://github.com/octo/widgets/pull/9) is open for this task already; merge it",
		"Red. Pull request #2 was updated: https://github.com/octo/widgets/pull/2.":                       "Red. [Pull request #2](https://github.com/octo/widgets/pull/2) was updated.",
		"The issue octo/widgets#1 is closed.":                                                             "The issue [octo/widgets#1](https://github.com/octo/widgets/issues/1) is closed.",
		"The change is commit cccccccccccc on b.":                                                         "The change is commit [`cccccccccccc`](https://github.com/octo/widgets/commit/" + strings.Repeat("c", 40) + ") on b.",
		"See !octo/widgets#1, (octo/widgets#1)":                                                           "See !&#8203;[octo/widgets#1](https://github.com/octo/widgets/issues/1), ([octo/widgets#1](https://github.com/octo/widgets/issues/1))",
		"octo/widgets#12 éocto/widgets#1":                                                                 "octo/widgets#&#8203;12 éocto/widgets#&#8203;1",
		"<b> [octo/widgets#1](https://e.example)":                                                         "&lt;b> \\[[octo/widgets#1](https://github.com/octo/widgets/issues/1)\\](https:&#8203;//e.example)",
		"The label \"pull request #9\" of https://github.com/octo/widgets/pull/9 is none, @octocat":       "The label \"pull request #&#8203;9\" of https:&#8203;//github.com/octo/widgets/pull/9 is none, @&#8203;octocat",
	} {
		must.Same(t, want, markdown.Line(own.Sentence(s)), s)
	}
}

func TestBodyLinksNoArtifactsOfOtherServer(t *testing.T) {
	run := transcripttest.Greeting()
	started := run[0].Data.(transcript.RunStarted)
	started.Artifacts = "https://evil.example/example/greet/actions/runs/1#artifacts"
	run[0].Data = started
	must.Lack(t, must.Get(alone(transcripttest.Folded(t, run), Options{Site: transcript.Site{Server: "https://github.com", Repository: "example/greet"}}))(t), "evil.example")
}
