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

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/transcript/sections"
)

// Request is what a later pull request's body tells of an earlier request for work on it.
type Request = sections.Request

// How much of a request is kept for the bodies after its own, in UTF-16 code units and
// in numbers.
const (
	keptText  = 2_000
	keptSteps = 30
	keptStep  = 200
	keptCalls = 200
	keptCall  = 100
)

// requestOf is what a later body tells of a run.
func requestOf(v *transcript.View) Request {
	r := Request{
		Run: v.Started.RunID, Link: v.Started.Link, Actor: v.Task.Actor, Asked: markdown.Cut(asked(v), keptText),
		Summary: markdown.Cut(v.Summary(), keptText),
	}
	for _, step := range v.Plan.Steps[:min(len(v.Plan.Steps), keptSteps)] {
		r.Plan = append(r.Plan, transcript.PlanStep{Step: markdown.Cut(step.Step, keptStep), Status: step.Status})
	}
	for _, e := range v.Entries {
		if c := e.Call; c != nil && !isPlan(e) && len(r.Calls) < keptCalls {
			r.Calls = append(r.Calls, sections.RequestCall{Tool: markdown.Cut(c.Tool, keptCall), Topic: markdown.Cut(c.Topic, keptCall), End: callEnd(c)})
		}
	}
	r.More = v.Calls - planCalls(v) - len(r.Calls)
	return r
}

func asked(v *transcript.View) string {
	return cmp.Or(v.Task.Request, v.Task.Title, markdown.Headline(v.Task.Text))
}

// A body remembers its request, and the earlier ones that it tells, in a comment that no
// page shows: text that is shown could not be told from what people wrote into it.
const (
	rememberStart = "<!-- agent-ci: requests "
	rememberEnd   = " -->\n"
)

const (
	mostRemembered = 12_000    // of a body, in UTF-16 code units
	mostUnpacked   = 512 << 10 // bytes
	mostRequests   = 50
)

// remembered is the mark for a later body, as far as it goes: of the oldest requests
// calls are left out first, then plans, then what is long, and at last whole requests,
// which are counted.
func remembered(v *transcript.View, earlier []Request) string {
	all := append([]Request{requestOf(v)}, slices.Clone(earlier)...)
	for len(all) > mostRequests {
		all = withoutOldest(all)
	}
	for ; len(all) > 0; all = withoutOldest(all) {
		packed := pack(all)
		for _, less := range shorter {
			for i := len(all) - 1; i >= 0 && len(packed) > mostRemembered; i-- {
				for len(packed) > mostRemembered && less(&all[i]) {
					packed = pack(all)
				}
			}
		}
		if len(packed) <= mostRemembered {
			return rememberStart + packed + rememberEnd
		}
	}
	return ""
}

// withoutOldest counts the oldest request instead of telling it.
func withoutOldest(all []Request) []Request {
	last := len(all) - 1
	if last > 0 {
		all[last-1].Before = max(all[last].Before, 0) + 1
	}
	return all[:last]
}

// shorter are the ways to shorten a request, in their order; each is false where it
// changes nothing.
var shorter = []func(*Request) bool{
	func(r *Request) bool {
		calls := len(r.Calls)
		r.Calls, r.More = r.Calls[:calls/2], r.More+calls-calls/2
		return calls > 0
	},
	func(r *Request) bool {
		had := len(r.Plan) > 0
		r.Plan = nil
		return had
	},
	func(r *Request) bool { return shorten(&r.Summary, 300) },
	func(r *Request) bool { return shorten(&r.Asked, 300) },
	func(r *Request) bool { return shorten(&r.Summary, 0) },
	func(r *Request) bool { return shorten(&r.Asked, 80) },
}

// shorten cuts a text to so many units.
func shorten(text *string, most int) bool {
	if markdown.Units(*text) <= most {
		return false
	}
	cut := ""
	if most > 0 {
		cut = markdown.Cut(*text, most)
	}
	changed := len(cut) < len(*text)
	*text = cut
	return changed
}

func pack(all []Request) string {
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

// Requests are those that a body of a run remembers, the newest first; none where it
// remembers nothing that can be read. Whoever may edit the body may have written them.
func Requests(body string) []Request {
	_, rest, _ := strings.Cut(body, rememberStart)
	packed, _, found := strings.Cut(rest, " -->")
	if !found || len(packed) > mostRemembered {
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
	var all []Request
	if json.NewDecoder(io.LimitReader(unpacker, mostUnpacked)).Decode(&all) != nil || len(all) > mostRequests {
		return nil
	}
	return all
}
