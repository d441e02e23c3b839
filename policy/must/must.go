// Package must checks in tests that a call succeeds, that a result is right, and that a text has certain
// parts.
package must

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/kr/pretty"
	"github.com/rogpeppe/go-internal/diff"
)

// Test is a running test, such as a *testing.T or a *rapid.T.
type Test interface {
	Helper()
	Error(words ...any)
	Errorf(format string, words ...any)
	Fatal(words ...any)
}

// Get returns the value of a call. It ends the test if the call failed.
func Get[T any](value T, err error) func(Test) T {
	return func(t Test) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Do ends the test if there is an error, which it reports after words that name the case.
func Do(t Test, err error, words ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(joinWords(words) + err.Error())
	}
}

// joinWords returns a line of words, or nothing for none.
func joinWords(words []any) string {
	if len(words) == 0 {
		return ""
	}
	for i, word := range words {
		if raw, is := word.([]byte); is {
			words[i] = string(raw)
		}
	}
	return fmt.Sprintln(words...)
}

// Write writes a file with its folders.
func Write(t Test, path, content string) {
	t.Helper()
	Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	Do(t, os.WriteFile(path, []byte(content), 0o666))
}

// Err returns the error of a call that has a value too.
func Err[T any](_ T, err error) error { return err }

// Fail reports an error that is missing or lacks part, after words that name the case. The test
// continues.
func Fail(t Test, part string, err error, words ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%sthe error is %v, want one with %q", joinWords(words), err, part)
	}
}

// Is reports an error that is not want (errors.Is), after words that name the case. The test continues.
func Is(t Test, want, err error, words ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%sthe error is %v, want %v", joinWords(words), err, want)
	}
}

// None reports the elements of a list that has any, after words that name what they are. The test
// continues.
func None[S ~[]E, E any](t Test, list S, words ...any) {
	t.Helper()
	if len(list) > 0 {
		t.Errorf("%sthere are %d: %+v", joinWords(words), len(list), list)
	}
}

// Same reports the differences between want and got (reflect.DeepEqual), after words that name what
// differs. The test continues.
func Same[T any](t Test, want, got T, words ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		differences := string(diff.Diff("want", lines(want), "got", lines(got)))
		t.Errorf("%swant and got differ:\n%s", joinWords(words), cmp.Or(differences, "both are written as "+string(lines(got))))
	}
}

var oneALine = strings.NewReplacer(`", "`, "\",\n\"", `\n`, "\\n\n")

// lines returns a text of lines as it is. Other values are written as in Go, with a line for each text.
// pretty looks up no methods by their names, as go-cmp does: the linker of a test program would keep all.
func lines(value any) []byte {
	if text := reflect.ValueOf(value); text.Kind() == reflect.String && strings.Contains(text.String(), "\n") {
		return []byte(text.String())
	}
	return []byte(oneALine.Replace(fmt.Sprintf("%# v\n", pretty.Formatter(value))))
}

// Contain reports the parts that a text lacks. The test continues.
func Contain(t Test, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// Lack reports the parts that a text has. The test continues.
func Lack(t Test, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in:\n%s", part, text)
		}
	}
}
