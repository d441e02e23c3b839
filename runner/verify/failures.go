package verify

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// Failure is a failing test as the output of a check names it.
type Failure struct {
	Name    string // empty where a file as a whole failed
	Package string // in which the test is, where the output tells it
	File    string // slash-separated; may be a name alone
	Line    int
	Load    bool // nothing of it ran: it does not compile or load
}

// ReadFailures finds the failing tests in the output of a check; none where it names
// none.
type ReadFailures func(output string) []Failure

var (
	goFailed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--- FAIL: (\S+) \(`) })
	goEnded  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:FAIL|ok  )\t(\S+)`) })
	goPlace  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:vet: )?(?:\./)?([\w./@+-]+_test\.go):(\d+):\d+: `)
	})
)

// goFailures reads the plain output of go test: tests that fail, each with its
// package, and test files that do not compile.
func goFailures(output string) []Failure {
	var all []Failure
	open := 0 // of all, those whose package is not told yet begin here
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := goFailed().FindStringSubmatch(line); m != nil {
			all = append(all, Failure{Name: m[1]})
		} else if m := goPlace().FindStringSubmatch(line); m != nil {
			all = append(all, Failure{File: path.Clean(m[1]), Line: number(m[2]), Load: true})
		} else if m := goEnded().FindStringSubmatch(line); m != nil {
			for ; open < len(all); open++ {
				if !all[open].Load {
					all[open].Package = m[1]
				}
			}
		}
		if len(all) == mostFailures {
			break
		}
	}
	return all
}

// mostFailures bounds what is read of an output, and longestName, in bytes, what is kept
// of the name of a test.
const (
	mostFailures = 10_000
	longestName  = 200
)

// shortened is a name of a test as it is shown.
func shortened(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "…"
}

func number(digits string) (n int) {
	const largest = 1 << 24
	for _, d := range digits {
		n = min(n*10+int(d-'0'), largest)
	}
	return n
}

// loads is how the common languages say that a file of tests does not compile or load.
var loads = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)ImportError|ModuleNotFoundError|SyntaxError|IndentationError|error during collection|Cannot find module|error\[E\d{4}\]|could not compile|` +
		`error TS\d+|cannot find symbol|COMPILATION ERROR|NameError: uninitialized constant|\bLoadError\b|\[build failed\]|\[setup failed\]|: undefined: |undefined reference to|error CS\d+|fatal error: .*: No such file`)
})

// runNothing is how they say that no test ran.
var runNothing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:collected 0 items|no tests ran\b|No tests found|1\.\.0\b|Ran 0 tests|\s*0 passing\b|0 examples, 0 failures|No test files found|.*\[no tests to run\])`)
})

// runSome is a sign that others did.
var runSome = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:ok  \t\S+\t[0-9.]+s$|--- |collected [1-9]|Ran [1-9]|ok \d|not ok \d|\s*[1-9]\d* passing)`)
})

func ranNothing(output string) bool {
	return runNothing().MatchString(output) && !runSome().MatchString(output)
}
