package body

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Own is what a run made or knows on a forge: the things whose names are links in what
// agent-ci itself says.
type Own struct {
	Site    transcript.Site
	Issue   string // OWNER/REPO#N
	Pulls   []int
	Commits []string // that are there

	told  bool // how the run ended stands above already
	files bool // are listed: no page of the forge beside this one shows them
}

// ownOf is what a transcript tells of, at a site that is believed; where none is given,
// at the one that the transcript names.
func ownOf(v *transcript.View, site transcript.Site) Own {
	if site == (transcript.Site{}) {
		site = v.Site()
	}
	own := Own{Site: site, Issue: v.Task.Issue}
	onForge := v.Started.Publish == "github"
	if onForge || v.Started.Link != "" {
		own.Commits = append(own.Commits, v.Workspace.BaseSHA)
	}
	for _, p := range v.Publish {
		own.Pulls = append(own.Pulls, p.Number)
		if onForge && p.Step != "commit" {
			own.Commits = append(own.Commits, p.HeadSHA)
		}
	}
	return own
}

// aboutPull is how sentences of a run begin that tell of a pull request which it found.
var aboutPull = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Pull request #([1-9]\d{0,8})\b`) })

// Sentence is what agent-ci says, as Markdown: what of it is the run's own is a link, all
// else plain text. The address of a pull request is left out where its name is a link.
func (o Own) Sentence(s string) string {
	pulls := o.Pulls
	if m := aboutPull().FindStringSubmatch(s); m != nil {
		number, _ := strconv.Atoi(m[1])
		pulls = append(pulls[:len(pulls):len(pulls)], number)
	}
	var known []markdown.Known
	know := func(text, name, address string) {
		if address != "" {
			known = append(known, markdown.Known{Text: text, Link: markdown.Link{Name: name, Address: address}})
		}
	}
	for _, number := range pulls {
		page, name := o.Site.Pull(number), "ull request #"+strconv.Itoa(number)
		if page != "" {
			s = regexp.MustCompile(`: `+regexp.QuoteMeta(page)+`\b`).ReplaceAllString(s, "")
		}
		know("P"+name, "P"+name, page)
		know("p"+name, "p"+name, page)
	}
	know(o.Issue, o.Issue, o.Site.Issue(o.Issue))
	for _, sha := range o.Commits {
		know(transcript.ShortSHA(sha), code(transcript.ShortSHA(sha)), o.Site.Commit(sha))
	}
	return markdown.Linked(strings.TrimSpace(s), known)
}

// issue is an issue by its name, commit a commit by its id: links where they have pages.
func (o Own) issue(reference string) string {
	return linked(reference, o.Site.Issue(reference), reference)
}

func (o Own) commit(sha string) string {
	name := transcript.ShortSHA(sha)
	if !slices.Contains(o.Commits, sha) {
		return code(name)
	}
	return linked(code(name), o.Site.Commit(sha), name)
}

// linked is a link by its name, and where there is no address, the text as code.
func linked(name, address, text string) string {
	if address == "" {
		return code(text)
	}
	return markdown.Link{Name: name, Address: address}.String()
}

// run is a run by its id, a link to the workflow's run.
func (o Own) run(id, page string) string {
	return linked(text(id), o.Site.Page(page), id)
}

// artifacts is the page of the workflow's run with the files that the action uploads of a
// run; "" where it uploads none.
func (o Own) artifacts(v *transcript.View) string { return o.Site.Page(v.Started.Artifacts) }

// Signs are put beside the words for how something came out.
const (
	good    = "✅ "
	bad     = "❌ "
	neither = "⚠️ "
)

var resultSigns = map[string]string{
	"passed": good, "flaky, accepted": good, transcript.CheckFailed: bad, "red before too": neither, "not run": neither,
	"not run: a check that it needs did not pass": neither, transcript.Proven: good,
}

func signed(result string) string { return resultSigns[result] + result }

// EndSign is the sign of an outcome that has this exit status.
func EndSign(outcome string, exit int) string {
	switch {
	case exit != 0:
		return bad
	case outcome == "changed":
		return good
	}
	return ""
}

// pullLink is a pull request by its number.
func (o Own) pullLink(number int, page string) string {
	return linked("#"+strconv.Itoa(number), cmp.Or(o.Site.Page(page), o.Site.Pull(number)), page)
}
