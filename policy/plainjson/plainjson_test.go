package plainjson_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/plainjson"
)

func TestNamesFieldAndKind(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                        "",
		``:                          "it is empty, not JSON",
		`{"issue":`:                 "it is JSON without its end",
		`{"issue":x}`:               "not valid JSON: invalid character 'x' looking for beginning of value",
		`[1]`:                       "it is a list, not an object",
		`{"issue":{"number":"1"}}`:  "issue.number is a string, not a whole number",
		`{"issue":{"number":1.5}}`:  "issue.number is 1.5, not a whole number",
		`{"issue":{"number":1e40}}`: "issue.number is 1e40, not a whole number",
		`{"issue":{"number":` + strings.Repeat("9", 99) + `}}`: "issue.number is " + strings.Repeat("9", 40) + ", which is out of range",
		`{"issue":{"title":true}}`:                             "issue.title is true or false, not a string",
		`{"issue":{"labels":{}}}`:                              "issue.labels is an object, not a list",
		`{"issue":{"labels":["a",1]}}`:                         "issue.labels is a number, not a string",
		`{"issue":{"cost":"x"}}`:                               "issue.cost is a string, not a number",
		`{"issue":{"locked":"x"}}`:                             "issue.locked is a string, not true or false",
		`{"issue":[]}`:                                         "issue is a list, not an object",
		`{"issue":{"at":"tomorrow"}}`:                          `"tomorrow" is not a time like 2026-01-31T08:00:00Z`,
		`{"issue":{"pack":7}}`:                                 "issue.pack is a number, not a string",
		`{"issue":{"host":1}}`:                                 "issue.host is a number, not a string",
		`{"issue":{"at":7}}`:                                   "a time is not a string like 2026-01-31T08:00:00Z",
	} {
		var event struct {
			Issue *struct {
				Number int        `json:"number"`
				Title  string     `json:"title"`
				Labels []string   `json:"labels"`
				Cost   *float64   `json:"cost"`
				Locked bool       `json:"locked"`
				At     time.Time  `json:"at"`
				Pack   []byte     `json:"pack"`
				Host   netip.Addr `json:"host"`
			} `json:"issue"`
		}
		err := plainjson.Unmarshal([]byte(raw), &event)
		got := ""
		if err != nil {
			got = err.Error()
		}
		must.Same(t, want, got, raw)
	}
}

func TestKeepsErrors(t *testing.T) {
	err := plainjson.Unmarshal([]byte("["), new(any))
	must.Same(t, true, errors.As(err, new(*json.SyntaxError)), err, "hides the error of encoding/json")
	other := errors.New("another error")
	must.Same(t, other.Error(), plainjson.Explain(other).Error())
}
