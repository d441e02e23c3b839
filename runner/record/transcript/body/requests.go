package body

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// How much of a request is kept for the bodies after its own, in UTF-16 code units, and how little if there
// are many.
const (
	maxRequestText = 2_000
	minRequestText = 80
)

// requestOf returns the run's request for later bodies.
func requestOf(v *transcript.View) sections.Request {
	return sections.Request{
		Run: v.Started.RunID, Link: v.Started.Link, Actor: v.Task.Actor, Asked: markdown.Cut(requestText(v), maxRequestText),
		Summary: markdown.Cut(v.Summary(), maxRequestText),
	}
}

func requestText(v *transcript.View) string {
	return cmp.Or(v.Task.Request, v.Task.Title, markdown.Headline(v.Task.Text))
}

// A body stores its request and the earlier ones in an invisible comment. Visible text could be
// confused with people's edits.
const (
	rememberStart = "<!-- agent-ci: requests "
	rememberEnd   = " -->\n"
)

const (
	maxStoredUnits = 12_000    // of a body, in UTF-16 code units
	maxUnpacked    = 512 << 10 // bytes
	maxRequests    = 50
)

// requestComment returns the comment for a later body, within the limit. It drops the oldest summaries
// first, then long texts, at last whole requests, which it counts.
func requestComment(v *transcript.View, earlier []sections.Request) string {
	all := append([]sections.Request{requestOf(v)}, earlier...)
	packed := pack(all)
	for len(all) > 0 && (len(all) > maxRequests || len(packed) > maxStoredUnits) {
		all = shortenRequests(all)
		packed = pack(all)
	}
	if len(all) == 0 {
		return ""
	}
	return rememberStart + packed + rememberEnd
}

// shortenRequests makes the list shorter by one step, oldest requests first: drop a summary, else cut a
// request's text, else drop the oldest request and count it in Before.
func shortenRequests(all []sections.Request) []sections.Request {
	last := len(all) - 1
	for i := last; i >= 0 && len(all) <= maxRequests; i-- {
		if all[i].Summary != "" {
			all[i].Summary = ""
			return all
		}
	}
	for i := last; i >= 0 && len(all) <= maxRequests; i-- {
		if markdown.Units(all[i].Asked) > minRequestText {
			all[i].Asked = markdown.Cut(all[i].Asked, minRequestText)
			return all
		}
	}
	if last > 0 {
		all[last-1].Before = max(all[last].Before, 0) + 1
	}
	return all[:last]
}

func pack(all []sections.Request) string {
	raw, err := json.Marshal(all)
	if err != nil { // of texts and numbers alone
		return ""
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(raw)
	if err = cmp.Or(err, w.Close()); err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// Requests returns the requests stored in a run's body, newest first, or nil if invalid. Anyone who
// may edit the body may have written them.
func Requests(body string) []sections.Request {
	_, rest, _ := strings.Cut(body, rememberStart)
	packed, _, found := strings.Cut(rest, " -->")
	if !found || len(packed) > maxStoredUnits {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	var all []sections.Request
	if json.NewDecoder(io.LimitReader(unpacker, maxUnpacked)).Decode(&all) != nil || len(all) > maxRequests {
		return nil
	}
	return all
}
