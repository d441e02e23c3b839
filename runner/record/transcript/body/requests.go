package body

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// How much of a request's text later bodies show, in UTF-16 code units: at most, and at least if
// there are many requests.
const (
	maxRequestText = 2_000
	minRequestText = 80
)

// requestOf returns this run's request, for later bodies.
func requestOf(v *transcript.View) sections.Request {
	return sections.Request{
		Run: v.Started.RunID, Link: v.Started.RunPage, Actor: v.Task.Actor, Asked: markdown.Cut(requestText(v), maxRequestText),
		Summary: markdown.Cut(v.Summary(), maxRequestText),
	}
}

// requestText returns the person's words, or else the task's title or first line.
func requestText(v *transcript.View) string {
	return cmp.Or(v.Task.RequestText, v.Task.Title, markdown.Headline(v.Task.Text))
}

// A body stores its request and the earlier ones in an invisible comment. Visible text could not be
// distinguished from people's edits.
const (
	requestsStart = "<!-- agent-ci: requests "
	requestsEnd   = " -->\n"
)

const (
	maxStoredUnits = 12_000    // length of the stored text, in UTF-16 code units
	maxUnpacked    = 512 << 10 // bytes after unpacking
	maxRequests    = 50
)

// requestComment returns the hidden comment with the requests, within its limits. It shortens the requests
// with shortenRequests until they fit, and returns "" if none fits.
func requestComment(v *transcript.View, earlier []sections.Request) string {
	all := append([]sections.Request{requestOf(v)}, earlier...)
	packed := compressRequests(all)
	for len(all) > 0 && (len(all) > maxRequests || len(packed) > maxStoredUnits) {
		all = shortenRequests(all)
		packed = compressRequests(all)
	}
	if len(all) == 0 {
		return ""
	}
	return requestsStart + packed + requestsEnd
}

// shortenRequests makes the list shorter by one step, and returns it. The list is newest first, and is
// changed in place. Each step drops the oldest summary, or else cuts the oldest long text, or else drops
// the oldest request. A list with more than maxRequests requests loses its oldest request at once.
// OmittedRequests of the last request counts the dropped ones.
func shortenRequests(all []sections.Request) []sections.Request {
	if len(all) <= maxRequests {
		for i, request := range slices.Backward(all) {
			if request.Summary != "" {
				all[i].Summary = ""
				return all
			}
		}
		for i, request := range slices.Backward(all) {
			if markdown.Units(request.Asked) > minRequestText {
				all[i].Asked = markdown.Cut(request.Asked, minRequestText)
				return all
			}
		}
	}
	oldest := len(all) - 1
	if oldest > 0 {
		omitted := max(all[oldest].OmittedRequests, 0) // it is negative if somebody has edited the body
		all[oldest-1].OmittedRequests = omitted + 1
	}
	return all[:oldest]
}

// compressRequests returns the requests as compressed text, or "" if that fails.
func compressRequests(all []sections.Request) string {
	raw, err := json.Marshal(all)
	if err != nil { // cannot happen: they contain only texts and numbers
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

// Requests returns the requests stored in a body, newest first, or nil if there are no valid ones.
// Do not trust them: anyone who may edit the body can change them.
func Requests(body string) []sections.Request {
	_, rest, _ := strings.Cut(body, requestsStart)
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
