package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"

	"gopkg.in/yaml.v3"
)

// The parser's tags for scalars.
const (
	textTag  = "!!str"
	nullTag  = "!!null"
	boolTag  = "!!bool"
	intTag   = "!!int"
	floatTag = "!!float"
	timeTag  = "!!timestamp" // plain dates, treated as text
	mergeTag = "!!merge"
)

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == nullTag }

// describeNode returns the type of node in the words of a message. It repeats the value only for
// numbers and truth values, because these are no secrets.
func describeNode(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Tag == intTag || node.Tag == floatTag:
		return "the number " + clip.Bytes(node.Value, 30)
	case node.Tag == boolTag:
		return node.Value
	default:
		return "text"
	}
}

// wrongType returns a message for a value of the wrong type.
func (k *Key) wrongType(node *yaml.Node) string {
	wanted := k.describeType()
	if k.Example != "" {
		wanted += " such as " + k.Example
	}
	return "must be " + wanted + ", not " + describeNode(node)
}

// readText stores a text in into, even if it is not valid. For a key with Scalars, numbers and truth values
// count as text. The form of a lenient text is not checked.
func (k *Key) readText(node *yaml.Node, into reflect.Value, lenient bool) (complaint, meant string) {
	isText := k.Scalars || node.Tag == textTag || node.Tag == timeTag
	if isText {
		into.SetString(node.Value)
		if lenient {
			return "", ""
		}
	}
	complaint, meant = k.TextProblem(node.Value)
	isWrongChoice := k.Values != nil && complaint != ""
	if !isText && !isWrongChoice { // such as the number 12 for a name; a message about choices says more
		return "must be text, not " + describeNode(node), strconv.Quote(clip.Bytes(node.Value, 60))
	}
	return complaint, meant
}

// TextProblem returns a message for a wrong text and the likely correct one. Both are "" for a valid text.
func (k *Key) TextProblem(s string) (complaint, meant string) {
	switch {
	case k.Values != nil:
		return k.choiceProblem(s)
	case s == "" && (k.NonEmpty || k.Required):
		return "must not be empty", ""
	case s == "" || k.Form == nil:
		return "", ""
	}
	if err := k.Form.Check(s); err != nil {
		return err.Error(), k.Form.Suggest(s)
	}
	return "", ""
}

// choiceProblem returns a message for a text that is not one of k.Values, and the likely correct value.
// Both are "" for a permitted text.
func (k *Key) choiceProblem(s string) (complaint, meant string) {
	if slices.Contains(k.Values, s) {
		return "", ""
	}
	quoted := strconv.Quote(clip.Bytes(s, 40))
	if len(k.Values) == 1 {
		return quoted + " is not allowed; it must be " + k.Values[0], ""
	}
	return quoted + " is not one of " + k.listValues(), Nearest(strings.ToLower(s), k.Values)
}

// listValues lists the allowed values for a sentence.
func (k *Key) listValues() string {
	shown := slices.Clone(k.Values)
	for i, value := range shown {
		if value == "" {
			shown[i] = `""`
		}
	}
	return strings.Join(shown, ", ")
}

// readInteger accepts decimal digits. It rejects octal, hexadecimal and grouped numbers, because YAML
// versions disagree on 010, and 4_000_000 is text in YAML 1.2. It suggests the digits for a number in another
// notation.
func (k *Key) readInteger(node *yaml.Node, into reflect.Value) (complaint, meant string) {
	number, err := strconv.ParseInt(node.Value, 10, 64)
	isPlain := node.Tag == intTag && err == nil && strconv.FormatInt(number, 10) == node.Value
	complaint = k.Span.problemWith(number)
	switch {
	case isPlain && complaint == "":
		into.SetInt(number)
		return "", ""
	case isPlain:
		return complaint, ""
	}
	meant = toPlainDigits(node.Value)
	if _, err := strconv.ParseInt(meant, 10, 64); err == nil {
		return "must be a whole number in plain digits", meant
	}
	return k.wrongType(node), ""
}

// toPlainDigits rewrites a number in plain digits: "$1,000" and "1e3" give 1000, and other texts "".
func toPlainDigits(text string) string {
	if comma := strings.LastIndexByte(text, ','); comma >= 0 && comma != len(text)-len(",000") {
		return "" // not followed by three digits: it may be a decimal comma
	}
	number, err := strconv.ParseFloat(strings.NewReplacer("_", "", ",", "", "$", "").Replace(text), 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return ""
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// problemWith returns a message for a number outside the span, or "".
func (s *Span) problemWith(number int64) string {
	switch {
	case number >= s.Min && number <= s.Max:
		return ""
	case s.Max == Unlimited: // so it is below Min
		return fmt.Sprintf("must be %d or more", s.Min)
	case s.Min == s.Max:
		return fmt.Sprintf("must be %d", s.Min)
	default:
		return fmt.Sprintf("must be between %d and %d", s.Min, s.Max)
	}
}

// readDecimal stores a number of 0 or more in into. Otherwise it returns a complaint, and the number to write instead,
// or "".
func (k *Key) readDecimal(node *yaml.Node, into reflect.Value) (complaint, meant string) {
	number, err := strconv.ParseFloat(node.Value, 64)
	isNumber, meant := node.Tag == intTag || node.Tag == floatTag, toPlainDigits(node.Value)
	switch {
	case !isNumber && meant != "":
		return "must be a number in plain digits", meant
	case !isNumber || err != nil:
		return k.wrongType(node), ""
	case number < 0:
		return "must be 0 or more", ""
	}
	into.SetFloat(number)
	return "", ""
}

// readBoolean accepts only true and false, because versions of YAML disagree on yes and on.
func (k *Key) readBoolean(node *yaml.Node, into reflect.Value) (complaint, meant string) {
	word := strings.ToLower(node.Value)
	isTrue := slices.Contains([]string{"true", "yes", "on", "y"}, word)
	switch {
	case node.Tag == boolTag:
		into.SetBool(isTrue)
		return "", ""
	case isTrue || slices.Contains([]string{"false", "no", "off", "n"}, word):
		return "must be true or false, without quotes", strconv.FormatBool(isTrue)
	}
	return k.wrongType(node), ""
}

// readDuration stores a positive duration in into. Otherwise it returns a complaint, and the duration to
// write instead, or "".
func (k *Key) readDuration(node *yaml.Node, into reflect.Value) (complaint, meant string) {
	parsed, err := time.ParseDuration(node.Value)
	switch {
	case node.Tag == intTag:
		number := clip.Bytes(node.Value, 20)
		return "must be a duration with its unit, not the number " + number, number + "m"
	case node.Tag != textTag:
		return k.wrongType(node), ""
	case err != nil:
		return "must be a duration such as 90s, 10m or 1h30m", suggestDuration(node.Value)
	case parsed <= 0:
		return "must be longer than 0s", ""
	}
	into.SetInt(int64(parsed))
	return "", ""
}

// suggestDuration converts "5 minutes" or "1d" to a valid duration. It returns "" for other texts.
func suggestDuration(s string) string {
	unit := strings.TrimLeft(s, "0123456789")
	number, err := strconv.Atoi(strings.TrimSuffix(s, unit))
	unit = strings.ToLower(strings.TrimSpace(unit))
	if err != nil || unit == "" {
		return ""
	}
	for _, known := range []string{"seconds", "minutes", "hours", "days"} {
		isShortPlural := unit == known[:3]+"s" // secs, mins
		if !strings.HasPrefix(known, unit) && !isShortPlural {
			continue
		}
		if known == "days" {
			number, known = number*24, "hours"
		}
		return fmt.Sprintf("%d%c", number, known[0])
	}
	return ""
}
