package testsource

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// File is a file of tests on one side of a change.
type File struct {
	Path string
	Text string
	Link bool // or another thing that is no file: it is never laid on the base
}

// language is how the common ones have tests in a file.
type language struct {
	test *regexp.Regexp // the beginning of a test, with its name
	mark *regexp.Regexp // any sign that there are tests; nil: test is all of them
}

// languages are those of endings of files.
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
	for _, ending := range []string{".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"} {
		all[ending] = js
	}
	return all
})

// Test is a test declared in a file.
type Test struct {
	Name string
	Line int
}

// Tests lists the named tests of a file. known is false for an unknown language.
func (f File) Tests() (all []Test, known bool) {
	of, known := languages()[path.Ext(f.Path)]
	if !known {
		return nil, false
	}
	const most = 1000
	line, from := 1, 0
	for _, m := range of.test.FindAllStringSubmatchIndex(f.Text, most) {
		for group := 2; group < len(m); group += 2 {
			if m[group] < 0 {
				continue
			}
			line += strings.Count(f.Text[from:m[group]], "\n")
			from = m[group]
			all = append(all, Test{f.Text[m[group]:m[group+1]], line})
		}
	}
	return all, true
}

// HasTests says whether a file has any, as far as its language is known; else by its name.
func (f File) HasTests() bool {
	of, known := languages()[path.Ext(f.Path)]
	switch {
	case !known:
		name := strings.ToLower(path.Base(f.Path))
		return strings.Contains(name, "test") || strings.Contains(name, "spec")
	case of.mark != nil:
		return of.mark.MatchString(f.Text)
	}
	return of.test.MatchString(f.Text)
}

// finder finds tests of a file by their names.
type finder struct {
	file   File
	known  bool
	byName map[string]Test // where the language is known: the first of each name
}

// finder reads the file once for all names.
func (f File) finder() finder {
	all, known := f.Tests()
	byName := make(map[string]Test, len(all))
	for _, d := range all {
		if _, twice := byName[d.Name]; !twice {
			byName[d.Name] = d
		}
	}
	return finder{f, known, byName}
}

// find returns the file's test for a name in an output, which may add enclosing names and
// parameters. ok is false without one.
func (f finder) find(name string) (of Test, ok bool) {
	if path.Ext(f.file.Path) == ".go" {
		name, _, _ = strings.Cut(name, "/")
	}
	forms := nameForms(name)
	for _, form := range forms {
		if of, ok := f.declared(form); ok {
			return of, true
		}
	}
	for _, form := range forms {
		class, method, dotted := cutLast(form, ".")
		if !dotted || method == "" || !f.file.isClass(class) {
			continue
		}
		if of, ok := f.declared(method); ok {
			return of, true
		}
	}
	return Test{}, false
}

// declared returns a test by its name in the file: in an unknown language, any word of the file.
func (f finder) declared(name string) (of Test, ok bool) {
	if f.known {
		of, ok = f.byName[name]
		return of, ok
	}
	line := lineOfWord(f.file.Text, name)
	return Test{name, line}, line > 0
}

// nameForms returns a name and its last part without enclosing names.
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

func cutLast(s, mark string) (before, after string, found bool) {
	at := strings.LastIndex(s, mark)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(mark):], true
}

// isClass reports whether a file is named after a class or an enclosing one, as in JUnit reports.
func (f File) isClass(name string) bool {
	stem, _, _ := strings.Cut(path.Base(f.Path), ".")
	return slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '$' }), stem)
}

// lineOfWord returns the line with a word on its own, not part of another word or beginning a sentence,
// or 0.
func lineOfWord(text, word string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return 0
		}
		begin := from + at
		end := begin + len(word)
		if (begin == 0 || !IsWordByte(text[begin-1])) && (end == len(text) || !IsWordByte(text[end]) && text[end] != ' ') {
			return strings.Count(text[:begin], "\n") + 1
		}
		from = begin + 1
	}
}

// IsWordByte reports whether a byte is part of a word or of a character beyond ASCII.
func IsWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// OwnName returns a test's probable name in its file: outputs add enclosing names and parameters.
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

func beforeParameters(name string) string {
	name, _, _ = strings.Cut(name, " with data set ")
	if at := strings.IndexAny(name, "[("); at > 0 {
		name = name[:at]
	}
	return strings.TrimSpace(name)
}
