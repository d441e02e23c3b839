package exchange

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// WaitIn returns the wait that an API requests in the headers or the JSON fields of its answer, or 0. h may be nil.
func WaitIn(h http.Header, body []byte) time.Duration {
	wait := cmp.Or(waitOfText(h.Get("Retry-After-Ms"), time.Millisecond), waitOfText(h.Get("Retry-After"), time.Second))
	if wait > 0 {
		return wait
	}
	var fields any
	if json.Unmarshal(body, &fields) != nil {
		return 0
	}
	return waitInFields(fields, 0)
}

// waitFields maps the names of fields that hold a wait to the unit of their numbers. The names are in lower case without -
// and _. Gemini has retryDelay, gateways have retry_after, OpenAI has resets_at.
var waitFields = map[string]time.Duration{
	"retryafter": time.Second, "retryafterseconds": time.Second, "retryaftersecs": time.Second, "retryaftersec": time.Second,
	"retryafterms": time.Millisecond, "retryafterinms": time.Millisecond, "retryaftermilliseconds": time.Millisecond,
	"retryin": time.Second, "retryinseconds": time.Second, "retrydelay": time.Second, "retrydelayms": time.Millisecond,
	"resetsinseconds": time.Second, "resetinseconds": time.Second, "resetsat": time.Second, "resetat": time.Second,
}

// waitInFields returns the longest wait in the fields of decoded JSON, which is at this depth of its document.
func waitInFields(value any, depth int) time.Duration {
	const maxDepth = 8
	if depth > maxDepth {
		return 0
	}
	longest := time.Duration(0)
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			longest = max(longest, waitInFields(element, depth+1))
		}
	case map[string]any:
		for name, element := range value {
			if unit, known := waitFields[strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))]; known {
				longest = max(longest, waitOfField(element, unit))
			}
			longest = max(longest, waitInFields(element, depth+1))
		}
	}
	return longest
}

// waitOfField returns the wait in a field's value: a number, a text, or a google.protobuf.Duration. unit is the unit of
// a plain number.
func waitOfField(value any, unit time.Duration) time.Duration {
	switch value := value.(type) {
	case float64:
		return waitOfNumber(value, unit)
	case string:
		return waitOfText(value, unit)
	case map[string]any:
		seconds, _ := value["seconds"].(float64)
		return waitOfNumber(seconds, time.Second)
	}
	return 0
}

// longestWait bounds every wait, which an endpoint may state as it likes.
const longestWait = 365 * 24 * time.Hour

// waitOfNumber converts a number of units to a wait of at most longestWait. It treats a large number of seconds as a Unix
// time.
func waitOfNumber(number float64, unit time.Duration) time.Duration {
	const minUnixTime, maxUnixTime = 9e8, 1e11
	if unit == time.Second && number >= minUnixTime {
		at := time.Unix(int64(min(number, maxUnixTime)), 0)
		return waitUntil(at)
	}
	wait := number * float64(unit)
	switch {
	case math.IsNaN(wait) || wait <= 0:
		return 0
	case wait > float64(longestWait):
		return longestWait
	}
	return time.Duration(wait)
}

// waitUntil returns the wait until a time, from 0 to longestWait.
func waitUntil(at time.Time) time.Duration { return min(max(0, time.Until(at)), longestWait) }

// waitOfText returns the wait in a text: a number of units, a duration such as "1m30s", or a date.
func waitOfText(text string, unit time.Duration) time.Duration {
	text = strings.TrimSpace(text)
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return waitOfNumber(number, unit)
	}
	return cmp.Or(durationAt(text, 0), dateAt(text))
}

// waitWords matches the words before a wait: "try again in", "retry after", "wait for",
// "retry_after_ms":. A number without a unit counts after a name only.
var waitWords = lazyregexp.New(`(?i)\b(?:(retry[-_ ]?(?:after|in|delay)(?:[-_ ]?(ms|milliseconds|seconds|secs?))?)|try (?:your request )?again|retry|retried|wait|available again|come back|resets?)\b` +
	`(?:[\s:="'\\(]|\b(?:in|after|for|at|on|until|least|most|about|approximately|around|another|a|minimum|of|your|the|this|request|again|please|before)\b)*`)

// waitInWords returns the wait that a message requests in words, or 0.
func waitInWords(message string) time.Duration {
	for _, match := range waitWords().FindAllStringSubmatchIndex(message, -1) {
		afterWords, hasFieldName, hasUnit := message[match[1]:], match[2] >= 0, match[4] >= 0
		unit := time.Duration(0)
		if hasFieldName {
			unit = time.Second
		}
		if hasUnit && strings.HasPrefix(strings.ToLower(message[match[4]:match[5]]), "m") { // ms or milliseconds
			unit = time.Millisecond
		}
		if wait := cmp.Or(dateAt(afterWords), durationAt(afterWords, unit)); wait > 0 {
			return wait
		}
	}
	return 0
}

var waitUnits = map[string]time.Duration{
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millis": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// waitPart matches one number of a duration, with its unit: "1m", ", 30.5 seconds" or " and 5 minutes".
var waitPart = lazyregexp.New(`^[\s,]*(?:and\s+)?(\d+(?:\.\d+)?)[\s-]*([A-Za-z]*)`)

// durationAt returns the duration at the start of a text, such as "6ms", "1m30.5s" or "2 hours and 5 minutes", or 0.
// unit is that of a number without a unit. If it is 0, such a number is no duration.
func durationAt(text string, unit time.Duration) (total time.Duration) {
	for {
		part := waitPart().FindStringSubmatch(text)
		if part == nil {
			return total
		}
		digits, unitName := part[1], part[2]
		unitOfPart, known := waitUnits[strings.ToLower(unitName)]
		if unitName == "" && total == 0 {
			unitOfPart = unit
		}
		number, err := strconv.ParseFloat(digits, 64)
		if err != nil || unitOfPart == 0 {
			return total
		}
		total = min(total+waitOfNumber(number, unitOfPart), longestWait)
		if !known { // no part follows a number without a unit
			return total
		}
		text = text[len(part[0]):]
	}
}

// waitDate matches a date and time such as "2026-01-31T09:00:00.5Z" or "2026-01-31 09:00 +01:00", or a date in the form of
// HTTP, such as "Sat, 31 Jan 2026 09:00:00 GMT".
var waitDate = lazyregexp.New(`^(?:(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?|([A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT))`)

// dateAt returns the time until the date at the start of a text, or 0. A date without a zone is in UTC.
func dateAt(text string) time.Duration {
	match := waitDate().FindStringSubmatch(text)
	if match == nil {
		return 0
	}
	date, clock, zone, httpDate := match[1], match[2], strings.Replace(match[3], ":", "", 1), match[4]
	if httpDate != "" {
		at, err := http.ParseTime(httpDate)
		if err != nil {
			return 0
		}
		return waitUntil(at)
	}
	if len(clock) == len("15:04") {
		clock += ":00"
	}
	isUTC := zone == "" || strings.ContainsAny(zone, "ZUG") // of Z, UTC and GMT
	if isUTC {
		zone = "+0000"
	}
	at, err := time.Parse("2006-01-02 15:04:05-0700", date+" "+clock+zone)
	if err != nil {
		return 0
	}
	return waitUntil(at)
}
