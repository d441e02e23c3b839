// Package plainjson reads JSON and says in plain words what is wrong with it. The errors of encoding/json
// name Go types. It writes JSON without escapes for HTML.
package plainjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Unmarshal reads JSON like [json.Unmarshal]. Explain describes its error.
func Unmarshal(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		if len(raw) == 0 {
			return &plainError{"it is empty, not JSON", err}
		}
		return Explain(err)
	}
	return nil
}

// Marshal returns a value as JSON in one line, without escaping <, > and &.
func Marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// Write writes a value as indented JSON, without escaping <, > and &.
func Write(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Explain returns an error of encoding/json with a plain text, and any other error unchanged.
func Explain(err error) error {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &plainError{wrongKind(kind), err}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if strings.HasPrefix(syntax.Error(), "unexpected end") {
			return &plainError{"it is JSON without its end", err}
		}
		return &plainError{fmt.Sprintf("not valid JSON: %v", syntax), err}
	}
	if moment, ok := errors.AsType[*time.ParseError](err); ok {
		return &plainError{fmt.Sprintf("%q is not a time like 2026-01-31T08:00:00Z", clip.Start(moment.Value, longestValue)), err}
	}
	if strings.HasPrefix(err.Error(), "Time.UnmarshalJSON: ") {
		return &plainError{"a time is not a string like 2026-01-31T08:00:00Z", err}
	}
	return err
}

type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }

// longestValue is how much of a wrong value an error shows, in bytes.
const longestValue = 40

// wrongKind describes a value of a wrong kind, as "issue.number is a string, not a whole number".
func wrongKind(e *json.UnmarshalTypeError) string {
	name := e.Field
	if name == "" {
		name = "it"
	}
	number, isNumber := strings.CutPrefix(e.Value, "number ")
	if found := kinds[e.Value]; !isNumber && found != "" {
		return fmt.Sprintf("%s is %s, not %s", name, found, kindOf(e.Type))
	}
	number = clip.Start(number, longestValue)
	if kind := kindOf(e.Type); kind == kinds["number"] || strings.Trim(number, "-0123456789") == "" {
		return fmt.Sprintf("%s is %s, which is out of range", name, number)
	}
	return fmt.Sprintf("%s is %s, not %s", name, number, kindOf(e.Type))
}

// kinds maps encoding/json's words for kinds of values to plain ones.
var kinds = map[string]string{"bool": "true or false", "string": "a string", "number": "a number", "array": "a list", "object": "an object"}

// kindOf returns the kind of JSON that a Go type is read from.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return kinds["string"]
	}
	switch t.Kind() {
	case reflect.Bool:
		return kinds["bool"]
	case reflect.String:
		return kinds["string"]
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return kinds["string"] // base64
		}
		return kinds["array"]
	case reflect.Float32, reflect.Float64:
		return kinds["number"]
	case reflect.Map, reflect.Struct:
		return kinds["object"]
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr {
		return "a whole number"
	}
	return "of the expected kind"
}
