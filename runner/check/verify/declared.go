package verify

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

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

// declaredTest is a test declared in a file.
type declaredTest struct {
	name string
	line int
}

// declaredTests lists the named tests of a file. known is false for an unknown language.
func (f testFile) declaredTests() (all []declaredTest, known bool) {
	of, known := languages()[path.Ext(f.path)]
	if !known {
		return nil, false
	}
	const most = 1000
	line, from := 1, 0
	for _, m := range of.test.FindAllStringSubmatchIndex(f.text, most) {
		for group := 2; group < len(m); group += 2 {
			if m[group] < 0 {
				continue
			}
			line += strings.Count(f.text[from:m[group]], "\n")
			from = m[group]
			all = append(all, declaredTest{f.text[m[group]:m[group+1]], line})
		}
	}
	return all, true
}

// hasTests says whether a file has any, as far as its language is known; else by its name.
func (f testFile) hasTests() bool {
	of, known := languages()[path.Ext(f.path)]
	switch {
	case !known:
		name := strings.ToLower(path.Base(f.path))
		return strings.Contains(name, "test") || strings.Contains(name, "spec")
	case of.mark != nil:
		return of.mark.MatchString(f.text)
	}
	return of.test.MatchString(f.text)
}

// finder finds tests of a file by their names.
type finder struct {
	file   testFile
	known  bool
	byName map[string]declaredTest // where the language is known: the first of each name
}

// finder reads the file once for all names.
func (f testFile) finder() finder {
	all, known := f.declaredTests()
	byName := make(map[string]declaredTest, len(all))
	for _, d := range all {
		if _, twice := byName[d.name]; !twice {
			byName[d.name] = d
		}
	}
	return finder{f, known, byName}
}

// find returns the file's test for a name in an output, which may add enclosing names and
// parameters. ok is false without one.
func (f finder) find(name string) (of declaredTest, ok bool) {
	if path.Ext(f.file.path) == ".go" {
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
	return declaredTest{}, false
}

// declared returns a test by its name in the file: in an unknown language, any word of the file.
func (f finder) declared(name string) (of declaredTest, ok bool) {
	if f.known {
		of, ok = f.byName[name]
		return of, ok
	}
	line := lineOfWord(f.file.text, name)
	return declaredTest{name, line}, line > 0
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
func (f testFile) isClass(name string) bool {
	stem, _, _ := strings.Cut(path.Base(f.path), ".")
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
		if (begin == 0 || !isWordByte(text[begin-1])) && (end == len(text) || !isWordByte(text[end]) && text[end] != ' ') {
			return strings.Count(text[:begin], "\n") + 1
		}
		from = begin + 1
	}
}

func isWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
