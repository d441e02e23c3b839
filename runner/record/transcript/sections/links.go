package sections

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Links has the issue, pull requests and commits of a run that get links in agent-ci's sentences.
type Links struct {
	Site    transcript.Site
	Issue   string // OWNER/REPO#N
	Pulls   []int
	Commits []string // commits that the forge has
}

// LinksOf returns the links for a run. They lead to site, which must be trusted.
func LinksOf(v *transcript.View, site transcript.Site) Links {
	l := Links{Site: site, Issue: v.Task.Issue}
	onForge := v.Started.Publish == "github"
	if onForge || v.Started.RunPage != "" {
		l.Commits = append(l.Commits, v.Workspace.BaseSHA)
	}
	for _, p := range v.PublishSteps {
		l.Pulls = append(l.Pulls, p.Number)
		if onForge && p.Step != "commit" {
			l.Commits = append(l.Commits, p.HeadSHA)
		}
	}
	return l
}

// aboutPull matches the beginning of a sentence about an existing pull request.
var aboutPull = lazyregexp.New(`^Pull request #([1-9]\d{0,8})\b`)

// Sentence returns a sentence of agent-ci in which the names of known objects are links. It removes the
// address of a linked pull request.
func (l Links) Sentence(s string) document.Text {
	pulls := l.Pulls
	if m := aboutPull().FindStringSubmatch(s); m != nil {
		number, _ := strconv.Atoi(m[1])
		pulls = append(slices.Clip(pulls), number)
	}
	known := map[string]document.Span{}
	addName := func(text string, style document.Style, address string) {
		if address != "" {
			known[text] = document.Span{Text: text, Style: style, Link: address}
		}
	}
	for _, number := range pulls {
		page := l.Site.Pull(number)
		if page != "" { // "Pull request #8: https://github.com/o/r/pull/8" becomes "Pull request #8"
			s = regexp.MustCompile(`: `+regexp.QuoteMeta(page)+`\b`).ReplaceAllString(s, "")
		}
		addName("Pull request #"+strconv.Itoa(number), document.Plain, page)
		addName("pull request #"+strconv.Itoa(number), document.Plain, page)
	}
	addName(l.Issue, document.Plain, l.Site.Issue(l.Issue))
	for _, sha := range l.Commits {
		addName(clip.SHA(sha), document.Monospace, l.Site.Commit(sha))
	}
	return linkNames(strings.Join(strings.Fields(s), " "), known)
}

// linkableNames matches words, numbers and paths as a whole.
var linkableNames = lazyregexp.New(`(?:[Pp]ull request )?[\w#/\-\x{80}-\x{10ffff}]+(?:\.[\w#/\-\x{80}-\x{10ffff}]+)*`)

// linkNames makes links of the known names in a sentence.
func linkNames(s string, links map[string]document.Span) (text document.Text) {
	copied := 0
	addTextUntil := func(end int) {
		if copied < end {
			text = append(text, document.Span{Text: s[copied:end], IsSentence: true})
		}
	}
	for _, match := range linkableNames().FindAllStringIndex(s, -1) {
		if span, known := links[s[match[0]:match[1]]]; known {
			addTextUntil(match[0])
			text, copied = append(text, span), match[1]
		}
	}
	addTextUntil(len(s))
	return text
}

// linkOrCode returns name as a link to address. Without an address, it returns text as code.
func linkOrCode(name document.Span, address, text string) document.Text {
	if address == "" {
		return document.Mono(text)
	}
	name.Link = address
	return document.Text{name}
}

func (l Links) issueLink(reference string) document.Text {
	return linkOrCode(document.Span{Text: reference}, l.Site.Issue(reference), reference)
}

// commitLink returns the short id of a commit, as a link if the forge has the commit.
func (l Links) commitLink(sha string) document.Text {
	name, page := clip.SHA(sha), ""
	if slices.Contains(l.Commits, sha) {
		page = l.Site.Commit(sha)
	}
	return linkOrCode(document.Span{Text: name, Style: document.Monospace}, page, name)
}

// runLink returns the id of a run as a link to its workflow run.
func (l Links) runLink(id, page string) document.Text {
	return linkOrCode(document.Span{Text: id}, l.Site.Page(page), id)
}

// pullLink returns a pull request as a link.
func (l Links) pullLink(number int, page string) document.Text {
	return linkOrCode(document.Span{Text: "#" + strconv.Itoa(number)}, cmp.Or(l.Site.Page(page), l.Site.Pull(number)), page)
}

// remoteLink returns the address of a git remote, as a link if it is the site's repository.
func (l Links) remoteLink(address string) document.Text {
	page := l.Site.Home()
	if page != strings.TrimSuffix(address, ".git") {
		page = ""
	}
	return linkOrCode(document.Span{Text: address, Style: document.Monospace}, page, address)
}
