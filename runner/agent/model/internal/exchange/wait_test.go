package exchange

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestReadsWaitInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at a time that stands still
		at := time.Now().UTC().Add(90 * time.Second)
		for message, want := range map[string]time.Duration{
			"Rate limit reached for gpt-5. Please try again in 6ms. Visit …": 6 * time.Millisecond,
			"Please try again in 1.5s.":                                      1500 * time.Millisecond,
			"please Try again in 1m30.5s":                                    90*time.Second + 500*time.Millisecond,
			"try again in 20 seconds, or later":                              20 * time.Second,
			"try again in 1 minute":                                          time.Minute,
			"try again in 2 hours 5 minutes":                                 2*time.Hour + 5*time.Minute,
			"Requests to the Responses API have exceeded the call rate limit of your current tier. Please retry after 3 seconds.": 3 * time.Second,
			"Try again after 20s":                                               20 * time.Second,
			"Please retry in 34.074824224s.":                                    34074824224 * time.Nanosecond,
			"please wait 1m30s before you retry":                                90 * time.Second,
			"You must wait for 250 milliseconds":                                250 * time.Millisecond,
			"wait at least 2 minutes and 5 seconds":                             125 * time.Second,
			"The limit resets in 1 hour, 2 minutes":                             62 * time.Minute,
			"Retry-After: 7":                                                    7 * time.Second,
			`AzureException - {"error": {"retry_after": 2.5}}`:                  2500 * time.Millisecond,
			`{\"retry_after_ms\": 1500}`:                                        1500 * time.Millisecond,
			`RESOURCE_EXHAUSTED "retryDelay": "34s"`:                            34 * time.Second,
			"Try again at " + at.Format(time.RFC3339):                           90 * time.Second,
			"Please retry after " + at.Format(http.TimeFormat) + ".":            90 * time.Second,
			"Your limit resets at " + at.Format("2006-01-02 15:04:05") + " UTC": 90 * time.Second,
			"try again in a while":                                              0,
			"try again":                                                         0,
			"retry after 3 attempts":                                            0,
			"retry up to 3 times":                                               0,
			"try again in 5 or 6 days' time":                                    0,
			"resets every 60 s":                                                 0,
			"Limit 30000, Used 29000, Requested 2000":                           0,
			"": 0,
		} {
			if got := waitInWords(message); (got - want).Abs() > time.Microsecond {
				t.Errorf("%q asks for %s, want %s", message, got, want)
			}
		}
	})
}

func TestReadsWaitInAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().UTC().Add(time.Hour)
		for name, c := range map[string]struct {
			header http.Header
			body   string
			want   time.Duration
		}{
			"seconds":                      {http.Header{"Retry-After": {"2"}}, "", 2 * time.Second},
			"milliseconds":                 {http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"1500"}}, "", 1500 * time.Millisecond},
			"a duration":                   {http.Header{"Retry-After": {"1m30s"}}, "", 90 * time.Second},
			"a date":                       {http.Header{"Retry-After": {at.Format(http.TimeFormat)}}, "", time.Hour},
			"another date":                 {http.Header{"Retry-After": {at.Format(time.RFC3339)}}, "", time.Hour},
			"a date far away":              {http.Header{"Retry-After": {"Fri, 31 Dec 2999 23:59:59 GMT"}}, "", 365 * 24 * time.Hour},
			"a past date":                  {http.Header{"Retry-After": {at.Add(-2 * time.Hour).Format(http.TimeFormat)}}, "", 0},
			"nonsense":                     {http.Header{"Retry-After": {"soon"}}, "", 0},
			"no number":                    {http.Header{"Retry-After": {"NaN"}}, "", 0},
			"for ever":                     {http.Header{"Retry-After": {"Inf"}}, "", 365 * 24 * time.Hour},
			"less than nothing":            {http.Header{"Retry-After": {"-5"}}, "", 0},
			"a field":                      {nil, `{"error":{"message":"x","retry_after":3}}`, 3 * time.Second},
			"a field of milliseconds":      {nil, `{"error":{"message":"x"},"retry_after_ms":250}`, 250 * time.Millisecond},
			"a field of text":              {nil, `{"detail":{"Retry-After":"4"}}`, 4 * time.Second},
			"Gemini's":                     {nil, `[{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`, 34500 * time.Millisecond},
			"a field of seconds and nanos": {nil, `{"error":{"details":[{"retryDelay":{"seconds":5,"nanos":1}}]}}`, 5 * time.Second},
			"a time since 1970":            {nil, fmt.Sprintf(`{"error":{"type":"usage_limit_reached","resets_at":%d}}`, at.Unix()), time.Hour},
			"a date in a field":            {nil, fmt.Sprintf(`{"error":{"resets_at":%q}}`, at.Format(time.RFC3339)), time.Hour},
			"another field":                {nil, `{"error":{"message":"x","max_retries":3}}`, 0},
			"no JSON":                      {nil, `<html>`, 0},
			"too deep":                     {nil, strings.Repeat(`{"a":`, 20) + `{"retry_after":3}` + strings.Repeat("}", 20), 0},
		} {
			must.Same(t, c.want, WaitIn(c.header, []byte(c.body)), name)
		}
	})
}
