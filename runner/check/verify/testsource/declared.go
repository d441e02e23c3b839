package testsource

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// File is a test file before or after a change.
type File struct {
	Path       string
	NotRegular bool   // it is a link or something else that is no file; it is never copied to the base
	Tests      []Test // that it declares
	Known      bool   // its language is known; otherwise it has no Tests

	text   string
	byName map[string]Test // the first of Tests with each name
}

// language describes how tests look in a language.
type language struct {
	declaration *regexp.Regexp // the beginning of a test, with its name in a group
	anyTest     *regexp.Regexp // any sign of tests; nil: only declaration counts
}

// javaScript lists file endings of JavaScript and TypeScript. Reports of their tests name no class after the file.
var javaScript = strings.Fields(".js .jsx .ts .tsx .mjs .cjs .mts .cts")

// languages maps file endings to languages.
var languages = sync.OnceValue(func() map[string]language {
	quoted := `(?:'([^'\n]+)'|"([^"\n]+)"|` + "`([^`\n]+)`" + `)`
	js := language{
		regexp.MustCompile(`(?m)^\s*(?:it|test|specify)(?:\.\w+)*(?:\([^\n]*\))?\(\s*` + quoted),
		regexp.MustCompile(`\b(?:it|test|specify|describe|suite|bench)\s*[.(` + "`" + `]`),
	}
	java := language{
		regexp.MustCompile(`(?m)@(?:Test|ParameterizedTest|RepeatedTest)\b[^;{]*?\b(?:void|fun)\s+` + "`?" + `(\w+)`),
		regexp.MustCompile(`@\w*Test\w*|@Property|\w+Spec\b|\bshould\b`),
	}
	all := map[string]language{
		".go": {
			regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`),
			regexp.MustCompile(`(?m)^func (?:Test|Fuzz|Example|Benchmark)|^func \(\w+ \*?\w+\) Test|\b(?:Describe|Context|It|Specify)\(`),
		},
		".py": {regexp.MustCompile(`(?m)^\s*(?:async )?def (test\w*)\(`), regexp.MustCompile(`\bdef test|\bclass Test|TestCase|>>> `)},
		".rb": {
			regexp.MustCompile(`(?m)^\s*(?:def (test_\w+)|(?:it|test|specify|scenario|example) ['"]([^'"\n]+)['"])`),
			regexp.MustCompile(`(?m)^\s*(?:def test_|(?:it|test|specify|scenario|example|should|property)\b)`),
		},
		".rs": {
			regexp.MustCompile(`(?m)#\[(?:\w+::)*(?:test|rstest)\b[^\n]*\][^;{]*?\bfn (\w+)`),
			regexp.MustCompile(`#\[[^\]\n]*test|proptest!|quickcheck`),
		},
		".java": java, ".kt": java,
		".php": {
			regexp.MustCompile(`(?m)\bfunction (test\w+)\(|^\s*(?:it|test)\(\s*['"]([^'"\n]+)['"]`),
			regexp.MustCompile(`(?m)\bfunction test|#\[Test|@test\b|^\s*(?:it|test)\(`),
		},
		".bats": {regexp.MustCompile(`(?m)^@test ['"](.+)['"]`), nil},
		".exs":  {regexp.MustCompile(`(?m)^\s*(?:test|property) "([^"\n]+)"`), nil},
	}
	for _, ending := range javaScript {
		all[ending] = js
	}
	return all
})

// Test is a test declared in a file.
type Test struct {
	Name string
	Line int
}

// NewFile returns the file at filePath with a text, and the tests that it declares.
func NewFile(filePath, text string) File {
	f := File{Path: filePath, text: text, byName: map[string]Test{}}
	lang, known := languages()[path.Ext(filePath)]
	f.Known = known
	if !known {
		return f
	}
	const maxTests = 1000
	line, from := 1, 0
	for _, m := range lang.declaration.FindAllStringSubmatchIndex(text, maxTests) {
		for group := range slices.Chunk(m[2:], 2) {
			begin, end := group[0], group[1]
			if begin < 0 { // the group did not match
				continue
			}
			line += strings.Count(text[from:begin], "\n")
			from = begin
			test := Test{text[begin:end], line}
			f.Tests = append(f.Tests, test)
			if !f.Declares(test.Name) {
				f.byName[test.Name] = test
			}
		}
	}
	return f
}

// Declares reports whether a file of a known language declares a test with exactly this name.
func (f File) Declares(name string) bool {
	_, found := f.byName[name]
	return found
}

// HasTests reports whether a file has tests. In an unknown language, its name decides.
func (f File) HasTests() bool {
	lang, known := languages()[path.Ext(f.Path)]
	switch {
	case !known:
		name := strings.ToLower(path.Base(f.Path))
		return strings.Contains(name, "test") || strings.Contains(name, "spec")
	case lang.anyTest != nil:
		return lang.anyTest.MatchString(f.text)
	}
	return len(f.Tests) > 0
}

// Find returns the test that a name in an output means. The output's name may include enclosing
// names and parameters. ok is false if the file has no such test.
func (f File) Find(name string) (test Test, ok bool) {
	if path.Ext(f.Path) == ".go" {
		name, _, _ = strings.Cut(name, "/")
	}
	forms := nameForms(name)
	for _, form := range forms {
		if test, ok := f.findDeclared(form); ok {
			return test, true
		}
	}
	for _, form := range forms {
		class, method, dotted := cutLast(form, ".")
		if !dotted || method == "" || !f.isNamedAfterClass(class) {
			continue
		}
		if test, ok := f.findDeclared(method); ok {
			return test, true
		}
	}
	return Test{}, false
}

// findDeclared returns the test with a name. In an unknown language any word of the file is a name.
func (f File) findDeclared(name string) (test Test, ok bool) {
	if f.Known {
		test, ok = f.byName[name]
		return test, ok
	}
	line := lineOfWord(f.text, name)
	return Test{name, line}, line > 0
}

// nameForms returns possible names in a file: the whole name, its last part, and its last part without parameters.
func nameForms(name string) []string {
	forms := []string{name}
	for _, mark := range []string{"::", " > ", " › ", "#"} {
		if _, last, found := cutLast(name, mark); found {
			name = last
		}
	}
	forms = append(forms, name)
	if before := beforeParameters(name); before != name {
		forms = append(forms, before)
	}
	return slices.DeleteFunc(forms, func(form string) bool { return strings.TrimSpace(form) == "" })
}

// cutLast is like strings.Cut, at the last occurrence.
func cutLast(s, mark string) (before, after string, found bool) {
	at := strings.LastIndex(s, mark)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(mark):], true
}

// isNamedAfterClass reports whether a file is named after a class, or a class around it, as in JUnit reports.
func (f File) isNamedAfterClass(name string) bool {
	stem, _, _ := strings.Cut(path.Base(f.Path), ".")
	return slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '$' }), stem)
}

// lineOfWord returns the number of the first line that has word as a whole word, or 0. A word followed by a
// blank does not count, because it may begin a sentence.
func lineOfWord(text, word string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return 0
		}
		begin := from + at
		end := begin + len(word)
		beginsWord := begin == 0 || !IsWordByte(text[begin-1])
		endsWord := end == len(text) || !IsWordByte(text[end]) && text[end] != ' '
		if beginsWord && endsWord {
			return strings.Count(text[:begin], "\n") + 1
		}
		from = begin + 1
	}
}

// IsWordByte reports whether a byte belongs to a word. All bytes of characters beyond ASCII do.
func IsWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// OwnName returns a test's probable name in its file, without enclosing names and parameters.
func OwnName(name string) string {
	for _, mark := range []string{"::", " > ", " › "} {
		if at := strings.LastIndex(name, mark); at >= 0 {
			return beforeParameters(name[at+len(mark):])
		}
	}
	// In Go, packages and subtests may contain slashes and dots.
	for _, begins := range []string{".Test", ".Fuzz", ".Example", ".Benchmark"} {
		if _, rest, ok := strings.Cut("."+name, begins); ok {
			own, _, _ := strings.Cut(begins[1:]+rest, "/")
			return own
		}
	}
	return beforeParameters(name)
}

// beforeParameters returns a test's name without its parameters.
func beforeParameters(name string) string {
	name, _, _ = strings.Cut(name, " with data set ")
	if at := strings.IndexAny(name, "[("); at > 0 {
		name = name[:at]
	}
	return strings.TrimSpace(name)
}
