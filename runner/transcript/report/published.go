package report

import (
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (o *overview) publishedSection() g.Node {
	if len(o.View.Publish) == 0 {
		return nil
	}
	var all []fact
	for _, p := range shownOf(o.View.Publish) {
		all = append(all, o.published(p))
	}
	return section("published", "Published", factList("facts", all))
}

// published has a link for each value that has a page. A commit has one once it was pushed.
func (o *overview) published(p transcript.Publish) fact {
	f := fact{Name: field(strings.ReplaceAll(p.Step, "_", " "))}
	add := func(value, link string) {
		if value != "" {
			f.Parts = append(f.Parts, fact{Value: field(value), Link: link})
		}
	}
	add(p.Operation, "")
	add(p.URL, link(p.URL))
	add(p.Branch, "")
	add(short(p.HeadSHA), o.pushed(p.HeadSHA))
	remote := ""
	if home := o.View.Site().Home(); home == strings.TrimSuffix(p.Remote, ".git") {
		remote = home
	}
	add(p.Remote, remote)
	return f
}

// pushed is the page of a commit that was pushed; empty for one that was not.
func (o *overview) pushed(sha string) string {
	pushed := slices.ContainsFunc(o.View.Publish, func(p transcript.Publish) bool { return p.Step != "commit" && p.HeadSHA == sha })
	if !pushed || o.View.Started.Publish != "github" {
		return ""
	}
	return o.commit(sha)
}

// commit is the page of a commit of a run that a forge knows; empty where there is none.
func (o *overview) commit(sha string) string {
	if o.View.Started.Publish != "github" && o.View.Started.Link == "" {
		return ""
	}
	return o.View.Site().Commit(sha)
}
