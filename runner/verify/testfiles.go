package verify

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
)

// Of the test files of a change at most so many get a class, and of each at most so
// many bytes are read.
const (
	mostTestFiles = 100
	mostOfTest    = 1 << 20
)

// testFile is a new or changed file of tests.
type testFile struct {
	path string
	text string
	link bool // or another thing that is no file: it is never laid on the base
}

// tests are the test files of a change.
type tests struct {
	judged []testFile
	more   int      // that are not judged, as there are too many
	data   []string // that tests read
	old    []testFile
}

// laid are the paths that are laid on the base.
func (t tests) laid() []string {
	paths := slices.Clone(t.data)
	for _, f := range t.judged {
		if !f.link {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// testsOf finds the test files of a change.
func (c Checks) testsOf(change *gitops.ChangeSet) (t tests, err error) {
	for _, f := range change.Files {
		fits, err := policy.Fits(c.Job.VerifyTests, f.Path)
		if err != nil {
			return t, fmt.Errorf("verify_tests: %w", err)
		}
		if !fits {
			continue
		}
		if err := c.addTest(&t, f); err != nil {
			return t, fmt.Errorf("read %q: %w", f.Path, err)
		}
	}
	return t, nil
}

func (c Checks) addTest(t *tests, f gitops.File) error {
	now := testFile{path: f.Path, link: !isRegular(f.NewMode)}
	data := isData(f.Path)
	if isRegular(f.OldMode) && f.NewID != f.OldID && !data && len(t.old) < mostTestFiles {
		text, err := c.textOf(f.OldID)
		if err != nil {
			return err
		}
		t.old = append(t.old, testFile{path: f.Path, text: text})
	}
	switch {
	case f.NewMode == "" || f.NewID == f.OldID && f.NewMode == f.OldMode:
	case data && !now.link:
		t.data = append(t.data, f.Path)
	case data:
	case len(t.judged) == mostTestFiles:
		t.more++
		if !now.link {
			t.data = append(t.data, f.Path)
		}
	default:
		if !now.link {
			text, err := c.textOf(f.NewID)
			if err != nil {
				return err
			}
			now.text = text
		}
		t.judged = append(t.judged, now)
	}
	return nil
}

func (c Checks) textOf(id string) (string, error) {
	content, _, err := c.Workspace.Checkout().Blob(id)
	if err != nil {
		return "", err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, mostOfTest))
	return string(raw), err
}

func isRegular(mode string) bool { return mode == "100644" || mode == "100755" }

// dataFolders and dataNames are of files that tests read, or that help them, and that
// have no tests.
var (
	dataFolders = []string{"testdata", "fixtures", "__fixtures__", "__snapshots__", "snapshots", "golden"}
	dataNames   = []string{"conftest.py", "__init__.py"}
	dataEndings = []string{
		".json", ".jsonl", ".yml", ".yaml", ".txt", ".md", ".csv", ".tsv", ".xml", ".html", ".css", ".snap", ".golden", ".out", ".png", ".jpg", ".jpeg", ".gif", ".svg",
		".pdf", ".zip", ".gz", ".tar", ".bin", ".dat", ".toml", ".ini", ".cfg", ".lock", ".sql", ".log", ".pem",
	}
)

func isData(name string) bool {
	folders := strings.Split(path.Dir(name), "/")
	return slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(dataFolders, f) }) ||
		slices.Contains(dataNames, path.Base(name)) || slices.Contains(dataEndings, strings.ToLower(path.Ext(name)))
}

// names are how the common languages begin a test, by the ending of a file.
var names = sync.OnceValue(func() map[string]*regexp.Regexp {
	js := regexp.MustCompile(`(?m)^\s*(?:it|test|specify)(?:\.\w+)*\(\s*(?:'([^'\n]+)'|"([^"\n]+)"|` + "`([^`\n]+)`" + `)`)
	java := regexp.MustCompile(`(?m)@(?:Test|ParameterizedTest)\b[^;{]*?\b(?:void|fun)\s+` + "`?" + `(\w+)`)
	all := map[string]*regexp.Regexp{
		".go": regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`), ".py": regexp.MustCompile(`(?m)^\s*(?:async )?def (test\w*)\(`),
		".rb": regexp.MustCompile(`(?m)^\s*(?:def (test_\w+)|it ['"]([^'"\n]+)['"])`), ".rs": regexp.MustCompile(`(?m)#\[(?:\w+::)*test\][^{;]*?\bfn (\w+)`),
		".java": java, ".kt": java, ".php": regexp.MustCompile(`(?m)\bfunction (test\w+)\(`), ".bats": regexp.MustCompile(`(?m)^@test ['"](.+)['"]`),
	}
	for _, ending := range []string{".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"} {
		all[ending] = js
	}
	return all
})

// declared is a test that a file declares.
type declared struct {
	name string
	line int
}

// declares lists the tests of a file. known is false for a language that is not read.
func (f testFile) declares() (all []declared, known bool) {
	form := names()[path.Ext(f.path)]
	if form == nil {
		return nil, false
	}
	const most = 1000
	line, from := 1, 0
	for _, m := range form.FindAllStringSubmatchIndex(f.text, most) {
		for group := 2; group < len(m); group += 2 {
			if m[group] < 0 {
				continue
			}
			line += strings.Count(f.text[from:m[group]], "\n")
			from = m[group]
			all = append(all, declared{f.text[m[group]:m[group+1]], line})
		}
	}
	return all, true
}

// has says whether a failure is one of a test of the file.
func (f testFile) has(x Failure) bool {
	folder := path.Dir(f.path)
	inPackage := x.Package == "" || folder == "." || x.Package == folder || strings.HasSuffix(x.Package, "/"+folder)
	if x.File != "" {
		return f.path == x.File || strings.HasSuffix(f.path, "/"+x.File) && inPackage || strings.HasSuffix(x.File, "/"+f.path)
	}
	return inPackage && f.tells(x.Name)
}

// tells says whether the file has a test of that name, as an output may write it:
// with what it is in before, and with parameters behind.
func (f testFile) tells(name string) bool {
	if path.Ext(f.path) == ".go" {
		name, _, _ = strings.Cut(name, "/")
		return name != "" && strings.Contains(f.text, "func "+name+"(")
	}
	for _, mark := range []string{"::", " > ", " › ", "#"} {
		if at := strings.LastIndex(name, mark); at >= 0 {
			name = name[at+len(mark):]
		}
	}
	if at := strings.IndexAny(name, "[("); at > 0 {
		name = name[:at]
	}
	if name = strings.TrimSpace(name); name == "" {
		return false
	}
	return strings.Contains(f.text, name) || f.tellsOfClass(name)
}

// tellsOfClass is tells for a name as reports of JUnit have it, class and method: the
// file has to be named after one of what the class is in.
func (f testFile) tellsOfClass(name string) bool {
	at := strings.LastIndex(name, ".")
	if at < 0 || at == len(name)-1 || !strings.Contains(f.text, name[at+1:]) {
		return false
	}
	stem, _, _ := strings.Cut(path.Base(f.path), ".")
	return slices.Contains(strings.FieldsFunc(name[:at], func(r rune) bool { return r == '.' || r == '$' }), stem)
}
