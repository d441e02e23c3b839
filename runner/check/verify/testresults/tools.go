package testresults

import (
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Common parts of the patterns below.
const (
	ofVitest  = `(?P<suite>(?:(?:\|[^|]+\||[^\s/.>]+) +)??(?P<file>\S+\.[cm]?[jt]sx?))`
	ofNode    = `(?P<in> *)[✔✖﹣⚠] (?P<name>.+?)(?: \([0-9.]+ms\))?`
	ofMaven   = `^(?:\[(?:ERROR|INFO|WARNING)\] +)?`
	ofCargo   = `^test (?P<name>.+?)(?: \(line [0-9]+\))?(?: - (?:should panic|compile fail|compile))* \.\.\. `
	ofCTest   = `^ *(?P<at>[0-9]+)/(?P<of>[0-9]+) Test +#[0-9]+: (?P<name>.+?) \.+ *`
	ofPHPUnit = `^[0-9]+\) (?P<suite>[\w\\]+)::(?P<name>\w+(?: with data set (?:#[0-9]+|"[^"]*"|@\S+))?)(?: \(.*\))?$`
)

// printers lists the tools whose default output is parsed. Other lines are skipped. The patterns
// come from real output in testdata.
var printers = []layout{
	{tool: "jest", suiteSeparator: " › ", groupSeparator: " › ", indent: 2, rules: []rule{
		{contains: " ", pattern: lazyregexp.New(`^(?P<end>PASS|FAIL) (?: *(?:\S+ +)??(?P<file>\S+\.[cm]?[jt]sx?)(?: \([0-9.]+ m?s\))?$)?`), action: (*toolParser).jestFile},
		{contains: "  ● ", pattern: lazyregexp.New(`^  ● \s*(?:Console|Cannot log after tests are done|Validation Warning|Deprecation Warning)`), action: (*toolParser).jestEndsFailure}, // a message, not a test
		{contains: "  ● ", pattern: lazyregexp.New(`^  ● (?P<name>.*)$`), action: (*toolParser).jestFails},
		{contains: "Tests:", pattern: lazyregexp.New(`^Tests:(?P<counts> +(?:[0-9]+ [a-z]+, )*[0-9]+ total)$`), action: (*toolParser).jestTotals},
		{contains: "Tests:", pattern: lazyregexp.New(`^Tests:`), action: (*toolParser).jestEndsFailure},
		{contains: "Test Suites:", pattern: lazyregexp.New(`^Test Suites:(?P<some>.* of )?`), action: func(p *toolParser, groups lineParts) { p.stopped = p.stopped || groups["some"] != "" }},
		{section: "failing", contains: " at ", pattern: lazyregexp.New(`^ +at .*?\(?(?P<file>[^ ()]+):(?P<line>[0-9]+):[0-9]+\)?$`), action: (*toolParser).jestSetsLine},
		{section: "files", pattern: lazyregexp.New(`^(?P<in> {2,})(?P<mark>[✓✕√×○✎]) (?:skipped |todo )?(?P<name>.+?)(?: \([0-9.]+ m?s\))?$`), action: (*toolParser).jestTest},
		{section: "files", contains: "  ", pattern: lazyregexp.New(`^(?P<in> {2,})(?P<name>[^ ].*)$`), action: (*toolParser).enterGroup},
	}},
	{tool: "vitest", suiteSeparator: " > ", rules: []rule{
		{contains: " FAIL ", pattern: lazyregexp.New(`^ FAIL +` + ofVitest + ` \[ (?P<path>.+) \]$`), action: (*toolParser).recordLoadError},
		{contains: " FAIL ", pattern: lazyregexp.New(`^ FAIL +` + ofVitest + ` > (?P<name>.+)$`), action: (*toolParser).continueFailures},
		{contains: " ❯ ", pattern: lazyregexp.New(`^ ❯ (?:.+ )?(?P<file>\S+):(?P<line>[0-9]+):[0-9]+$`), action: (*toolParser).considerFrame},
		{contains: " test", pattern: lazyregexp.New(`^ [✓❯↓] ` + ofVitest + ` +\([1-9][0-9]* tests?(?P<counts>(?: \| [0-9]+ \w+)*)\)`), action: (*toolParser).vitestFile},
		{contains: "✓ ", pattern: lazyregexp.New(`^ ✓ ` + ofVitest + ` > (?P<name>.+?)(?: [0-9]+ms)?$`), action: (*toolParser).recordPass},
		{contains: " > ", pattern: lazyregexp.New(`^ [↓□] ` + ofVitest + ` > (?P<name>.+?)(?: \[skipped\])?$`), action: (*toolParser).recordSkip},
		{contains: "Test Files  ", pattern: lazyregexp.New(`^ +Test Files  (?P<counts>.+) \((?P<of>[0-9]+)\)$`), action: (*toolParser).vitestFiles},
		{contains: "Tests  ", pattern: lazyregexp.New(`^ +Tests  (?:(?P<fails>[0-9]+) failed(?: \| )?)?(?:[0-9]+ \w+(?: \| )?)*(?:no tests| \([0-9]+\))$`), action: (*toolParser).addTotals},
		{contains: "Errors  ", pattern: lazyregexp.New(`^ +Errors  [0-9]+ errors?$`), action: (*toolParser).markStopped},
	}},
	{tool: "node's spec reporter", failsGroups: true, rules: []rule{
		{contains: "✖ failing tests:", pattern: lazyregexp.New(`^✖ failing tests:$`), action: enterSection("failing")},
		{section: "failing", contains: "test at ", pattern: lazyregexp.New(`^test at (?P<file>.+):(?P<line>[0-9]+):[0-9]+$`), action: (*toolParser).nodePlace},
		{section: "failing", contains: "✖ ", pattern: lazyregexp.New(`^` + ofNode + `$`), action: (*toolParser).nodeAgain},
		{contains: " # ", pattern: lazyregexp.New(`^` + ofNode + ` # (?:SKIP|TODO)\b.*$`), action: (*toolParser).recordSkip},
		{contains: "✔ ", pattern: lazyregexp.New(`^` + ofNode + `$`), action: (*toolParser).recordPass},
		{contains: "✖ ", pattern: lazyregexp.New(`^` + ofNode + `$`), action: (*toolParser).nodeFails},
		{contains: "▶ ", pattern: lazyregexp.New(`^ *▶ .+ \([0-9.]+ms\)$`), action: ignoreLine}, // the end of a group
		{contains: "▶ ", pattern: lazyregexp.New(`^(?P<in> *)▶ (?P<name>.+)$`), action: (*toolParser).enterGroup},
		{contains: "ℹ fail ", pattern: lazyregexp.New(`^ℹ fail (?P<fails>[0-9]+)$`), action: (*toolParser).addTotals},
		{contains: "ℹ cancelled ", pattern: lazyregexp.New(`^ℹ cancelled [1-9][0-9]*$`), action: (*toolParser).markStopped},
		{contains: "Error", pattern: lazyregexp.New(`^(?P<says>(?:SyntaxError: |Error: Cannot find (?:module|package) '|Error \[ERR_MODULE_NOT_FOUND\]: ).*)$`), action: func(p *toolParser, groups lineParts) { p.loadError = groups["says"] }},
	}},
	{tool: "mocha's spec reporter", section: "tree", indent: 2, rules: []rule{
		{contains: " passing", pattern: lazyregexp.New(`^  [0-9]+ passing(?: \(.+\))?$`), action: (*toolParser).mochaCounts},
		{section: "counts", contains: " failing", pattern: lazyregexp.New(`^  (?P<fails>[0-9]+) failing$`), action: (*toolParser).mochaTotals},
		{section: "failing", contains: ") ", pattern: lazyregexp.New(`^  [0-9]+\) (?P<name>.+)$`), action: (*toolParser).mochaTitle},
		{section: "failing", contains: ") ", pattern: lazyregexp.New(`^ +[0-9]+\) `), action: ignoreLine},
		{section: "title", contains: "       ", pattern: lazyregexp.New(`^ {7,}(?P<name>\S.*)$`), action: (*toolParser).mochaTitle},
		{section: "failing", contains: "Context.<anonymous> (", pattern: lazyregexp.New(`^ +at (?:async )?Context\.<anonymous> \((?:file://)?(?P<file>[^()]+):(?P<line>[0-9]+):[0-9]+\)$`), action: (*toolParser).mochaSetsPlace},
		{section: "tree", contains: "✔ ", pattern: lazyregexp.New(`^(?P<in> {2,})✔ (?P<name>.+?)(?: \([0-9]+ms\))?$`), action: (*toolParser).recordPass},
		{section: "tree", contains: "✓ ", pattern: lazyregexp.New(`^(?P<in> {2,})✓ (?P<name>.+?)(?: \([0-9]+ms\))?$`), action: (*toolParser).recordPass},
		{section: "tree", contains: "  - ", pattern: lazyregexp.New(`^(?P<in> {2,})- (?P<name>.+)$`), action: (*toolParser).recordSkip},
		{section: "tree", contains: ") ", pattern: lazyregexp.New(`^ +[0-9]+\) `), action: ignoreLine}, // named again below
		{section: "tree", contains: "  ", pattern: lazyregexp.New(`^(?P<in>(?:  )+)(?P<name>\S.*)$`), action: (*toolParser).enterGroup},
	}},
	{tool: "cargo test", suiteSeparator: "::", rules: []rule{
		{contains: "Running ", pattern: lazyregexp.New(`^ +Running (?:unittests \S+ |unittests |(?P<file>\S+) )?\((?:\S*/)?(?P<suite>[^\s/]+)-[0-9a-f]{16}(?:\.exe)?\)$`), action: (*toolParser).cargoTarget},
		{contains: "Doc-tests ", pattern: lazyregexp.New(`^ +Doc-tests \S+$`), action: (*toolParser).cargoTarget},
		{contains: "test ", pattern: lazyregexp.New(ofCargo + `ok(?: <.*>)?$`), action: (*toolParser).recordPass},
		{contains: "test ", pattern: lazyregexp.New(ofCargo + `ignored(?:, .*)?$`), action: (*toolParser).recordSkip},
		{contains: "test ", pattern: lazyregexp.New(ofCargo + `FAILED(?: <.*>)?$`), action: (*toolParser).recordFailure},
		{contains: "---- ", pattern: lazyregexp.New(`^---- (?P<name>.+?)(?: \(line [0-9]+\))? stdout ----$`), action: (*toolParser).reopenFailure},
		{contains: "panicked at ", pattern: lazyregexp.New(`panicked at (?P<file>[^\s']+):(?P<line>[0-9]+):[0-9]+:$`), action: (*toolParser).setThrowSite},
		{contains: "panicked at '", pattern: lazyregexp.New(`panicked at '(?P<says>.*?)(?:', (?P<file>\S+):(?P<line>[0-9]+):[0-9]+)?$`), action: (*toolParser).setThrowSite},
		{contains: "failures:", pattern: lazyregexp.New(`^failures:$`), action: enterSection("")},
		{contains: "test result: ", pattern: lazyregexp.New(`^test result: \w+\. [0-9]+ passed; (?P<fails>[0-9]+) failed;`), action: (*toolParser).addTotals},
		{contains: "error: test failed, to rerun pass ", pattern: lazyregexp.New(`^error: test failed, to rerun pass `), action: (*toolParser).markStopped},
		{contains: "error: could not compile ", pattern: lazyregexp.New("^error: could not compile `"), action: (*toolParser).cargoBuildError},
		{contains: " failed:", pattern: lazyregexp.New(`^error: [0-9]+ targets? failed:$`), action: func(p *toolParser, _ lineParts) { p.stopped = false }},
	}},
	{tool: "Maven Surefire", suiteSeparator: ".", rules: []rule{
		{contains: "Tests run: ", pattern: lazyregexp.New(ofMaven + `Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: (?P<skipped>[0-9]+),.* --? in (?P<class>[\w.$]+)$`), action: (*toolParser).mavenClass},
		{contains: " <<< ", pattern: lazyregexp.New(ofMaven + `(?P<name>[^\s()]+(?:\(.*\))?(?:\[.*\])?)\((?P<suite>[\w.$]+)\) +Time elapsed: .+ <<< (?:FAILURE|ERROR)!$`), action: (*toolParser).continueFailures},
		{contains: " <<< ", pattern: lazyregexp.New(ofMaven + `(?P<name>[\w.$]+\S*?)(?:  | -- )Time elapsed: .+ <<< (?:FAILURE|ERROR)!$`), action: (*toolParser).continueFailures},
		{contains: "\tat ", pattern: lazyregexp.New(`^\s+at \S+\((?P<file>\w+\.\w+):(?P<line>[0-9]+)\)$`), action: (*toolParser).considerFrame},
		{contains: "Results", pattern: lazyregexp.New(ofMaven + `Results ?:$`), action: enterSection("")},
		{contains: "Tests run: ", pattern: lazyregexp.New(ofMaven + `Tests run: [0-9]+, (?P<fails>Failures: [0-9]+, Errors: [0-9]+), Skipped: [0-9]+(?:, Flakes: [0-9]+)?$`), action: (*toolParser).addTotals},
		{contains: " SKIPPED", pattern: lazyregexp.New(`^\[INFO\] .+ SKIPPED(?: \[.*\])?$`), action: (*toolParser).markStopped},
	}},
	{tool: "RSpec", rules: []rule{
		{contains: "Pending:", pattern: lazyregexp.New(`^Pending:`), action: enterSection("pending")},
		{contains: "Failures:", pattern: lazyregexp.New(`^Failures:$`), action: enterSection("failures")},
		{contains: "Failed examples:", pattern: lazyregexp.New(`^Failed examples:$`), action: enterSection("failed")},
		{contains: "occurred while loading ", pattern: lazyregexp.New(`^An error occurred while loading (?:\./)?(?P<file>\S+)\.$`), action: (*toolParser).recordLoadError},
		{section: "failures", contains: ") ", pattern: lazyregexp.New(`^  [0-9]+\) (?P<name>.+)$`), action: (*toolParser).continueFailures},
		{contains: "Failure/Error:", pattern: lazyregexp.New(`^ *Failure/Error:`), action: func(p *toolParser, _ lineParts) { p.skipsReason = true }},
		{contains: "Finished in ", pattern: lazyregexp.New(`^Finished in `), action: enterSection("")},
		{section: "failed", contains: "rspec ", pattern: lazyregexp.New(`^rspec (?:'|\./)*(?P<file>[^\s:\[']+)(?::(?P<line>[0-9]+)|\[[0-9:]+\])'? # (?P<name>.+)$`), action: (*toolParser).rspecAgain},
		{contains: " example", pattern: lazyregexp.New(`^[0-9]+ examples?, (?P<fails>[0-9]+) failures?(?:, [0-9]+ pending)?(?:, [0-9]+ errors? occurred outside of examples)?$`), action: (*toolParser).addTotals},
	}},
	{tool: "PHPUnit", suiteSeparator: "::", rules: []rule{
		{contains: "There w", pattern: lazyregexp.New(`^There (?:was|were) [0-9]+ (?:errors?|failures?):$`), action: enterSection("failures")},
		{contains: "There w", pattern: lazyregexp.New(`^There (?:was|were) `), action: enterSection("others")},
		{contains: " triggered ", pattern: lazyregexp.New(`^[0-9]+ tests? triggered `), action: enterSection("others")},
		{section: "failures", contains: ") ", pattern: lazyregexp.New(ofPHPUnit), action: (*toolParser).continueFailures},
		{section: "failures", contains: ".php:", pattern: lazyregexp.New(`^(?P<file>\S+\.php):(?P<line>[0-9]+)$`), action: (*toolParser).considerFrame},
		{contains: "Tests: ", pattern: lazyregexp.New(`^Tests: [0-9]+, Assertions: [0-9]+(?P<others>[^.]*)\.$`), action: (*toolParser).phpunitTotals},
		{contains: "OK (", pattern: lazyregexp.New(`^OK \([0-9]+ tests?, [0-9]+ assertions?\)$`), action: (*toolParser).addTotals},
		{pattern: lazyregexp.New(`^[.EF][.EFWIRSDN]*$`), action: (*toolParser).markStopped}, // the last line of results lacks a percentage
	}},
	{tool: "ctest", rules: []rule{
		{contains: "The following tests FAILED:", pattern: lazyregexp.New(`^The following tests FAILED:$`), action: enterSection("failed")},
		{section: "failed", contains: " - ", pattern: lazyregexp.New(`^\t *[0-9]+ - (?P<name>.+) \((?P<says>[^()]+)\)(?: +.*)?$`), action: (*toolParser).recordFailure},
		{contains: " Test ", pattern: lazyregexp.New(ofCTest + `Passed +[0-9.]+ sec`), action: (*toolParser).recordPass},
		{contains: " Test ", pattern: lazyregexp.New(ofCTest + `\*\*\*(?:Skipped|Not Run \(Disabled\))`), action: (*toolParser).recordSkip},
		{contains: " Test ", pattern: lazyregexp.New(ofCTest + `\*\*\*`), action: (*toolParser).recordFile},
		{contains: "% tests passed", pattern: lazyregexp.New(`^[0-9]+% tests passed, (?P<fails>[0-9]+) tests? failed out of [0-9]+$`), action: (*toolParser).addTotals},
	}},
	{tool: "Gradle", suiteSeparator: ".", rules: []rule{
		{contains: " FAILED", pattern: lazyregexp.New(`^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) FAILED$`), action: (*toolParser).startFailure},
		{contains: " PASSED", pattern: lazyregexp.New(`^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) PASSED$`), action: (*toolParser).recordPass},
		{contains: " SKIPPED", pattern: lazyregexp.New(`^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) SKIPPED$`), action: (*toolParser).recordSkip},
		{contains: " at ", pattern: lazyregexp.New(`^    (?P<says>\S+) at (?P<file>[\w.]+):(?P<line>[0-9]+)$`), action: (*toolParser).considerFrame},
		{contains: " at ", pattern: lazyregexp.New(`^ +at .*\((?P<file>\w+\.\w+):(?P<line>[0-9]+)\)$`), action: (*toolParser).considerFrame},
		{contains: " completed, ", pattern: lazyregexp.New(`^[0-9]+ tests? completed, (?P<fails>[0-9]+) failed(?:, [0-9]+ skipped)?$`), action: (*toolParser).addTotals},
		{contains: "Execution failed for task ':", pattern: lazyregexp.New(`^Execution failed for task ':[^':]+:`), action: (*toolParser).markStopped}, // other projects may not have run
	}},
	{tool: "Python's unittest", rules: []rule{
		{contains: "unittest.loader.", pattern: lazyregexp.New(`^ERROR: (?P<module>[\w.]+) \(unittest\.loader\.(?:_FailedTest|ModuleImportFailure)[\w.]*\)$`), action: (*toolParser).unittestLoad},
		{contains: " (", pattern: lazyregexp.New(`^(?:ERROR|FAIL): (?P<name>\w+) \((?P<suite>[\w.]+)\)`), action: (*toolParser).unittestFails},
		{contains: " ... ok", pattern: lazyregexp.New(`^(?P<name>\w+) \((?P<suite>[\w.]+)\) \.\.\. ok$`), action: (*toolParser).unittestPasses},
		{contains: " ... skipped ", pattern: lazyregexp.New(`^(?P<name>\w+) \((?P<suite>[\w.]+)\) \.\.\. skipped `), action: (*toolParser).unittestSkips},
		{contains: "  File \"", pattern: lazyregexp.New(`^  File "(?P<file>[^"]+)", line (?P<line>[0-9]+), in `), action: (*toolParser).considerFrame},
		{contains: "    ", pattern: lazyregexp.New(`^    `), action: ignoreLine},
		{contains: "Traceback ", pattern: lazyregexp.New(`^Traceback \(most recent call last\):$`), action: ignoreLine},
		{contains: "------", pattern: lazyregexp.New(`^-{70}$`), action: func(p *toolParser, _ lineParts) { p.skipsReason = false }},
		{contains: "Ran ", pattern: lazyregexp.New(`^Ran [0-9]+ tests? in [0-9.]+s$`), action: (*toolParser).addTotals},
		{contains: "FAILED (", pattern: lazyregexp.New(`^FAILED \((?P<fails>(?:failures|errors)=[0-9]+(?:, errors=[0-9]+)?)`), action: (*toolParser).addTotals},
	}},
}

// jestFile begins the results of a file.
func (p *toolParser) jestFile(groups lineParts) {
	if groups["file"] == "" {
		return
	}
	file := clean(groups["file"], maxName)
	p.section, p.suite, p.groupPath, p.openFailures = "files", file, nil, nil
	p.results.addUnit(File, file)
	if groups["end"] == "PASS" {
		p.results.addPassed(file)
	}
	if p.files == nil {
		p.files = map[string]bool{}
	}
	if len(p.files) < maxScopes && !p.files[file] {
		p.files[file] = false
	}
}

// jestTest records a test that passed or was skipped. It also notes that the file's tests have lines.
func (p *toolParser) jestTest(groups lineParts) {
	if _, found := p.files[p.suite]; found {
		p.files[p.suite] = true
	}
	switch groups["mark"] {
	case "✓", "√":
		p.recordPass(groups)
	case "○", "✎":
		p.recordSkip(groups)
	}
}

// jestFails begins the details of a failing test, or of a file that did not load.
func (p *toolParser) jestFails(groups lineParts) {
	if p.section == "" {
		return
	}
	p.section = "failing"
	if strings.TrimSpace(groups["name"]) == "Test suite failed to run" {
		p.openFailures = nil
		p.recordLoadError(lineParts{"file": p.suite})
		delete(p.files, p.suite)
		return
	}
	p.startFailure(groups)
	for _, t := range p.openFailures {
		t.File = p.suite
	}
}

// jestSetsLine sets the line of the open failures that have none yet, from a stack frame in their own file.
func (p *toolParser) jestSetsLine(groups lineParts) {
	for _, t := range p.openFailures {
		if t.Line == 0 && strings.HasSuffix(groups["file"], p.suite) {
			t.Line = parseNumber(groups["line"])
		}
	}
}

// jestTotals adds the test totals. A file whose tests have no lines ran completely,
// unless some tests were skipped.
func (p *toolParser) jestTotals(groups lineParts) {
	p.addTotals(groups)
	for _, file := range slices.Sorted(maps.Keys(p.files)) {
		if !p.files[file] && !skippedSome(groups["counts"]) {
			p.results.addScope(scope{prefix: file + p.suiteSeparator})
		}
	}
	p.section, p.suite, p.files, p.openFailures = "", "", nil, nil
}

// jestEndsFailure ends the details of a failing test.
func (p *toolParser) jestEndsFailure(lineParts) {
	p.openFailures = nil
	if p.section != "" {
		p.section = "files"
	}
}

// skippedSome reports whether totals count tests that did not run.
func skippedSome(counts string) bool {
	return strings.Contains(counts, "skipped") || strings.Contains(counts, "todo")
}

// vitestFile records a file. Failing tests are named elsewhere.
func (p *toolParser) vitestFile(groups lineParts) {
	p.results.addUnit(File, groups["file"])
	if !skippedSome(groups["counts"]) {
		p.results.addScope(scope{prefix: p.fullName(groups)})
	}
}

// vitestFiles records whether some files did not run, by the file totals.
func (p *toolParser) vitestFiles(groups lineParts) {
	counts := groups["counts"]
	missesSome := sumNumbers(counts) != parseNumber(groups["of"])
	skippedAfterFailure := strings.Contains(counts, "failed") && strings.Contains(counts, "skipped")
	p.stopped = p.stopped || missesSome || skippedAfterFailure
}

// nodeFails adds a failing test. If a load error was printed before, it belongs to this test.
func (p *toolParser) nodeFails(groups lineParts) {
	p.startFailure(groups)
	if p.loadError != "" && len(p.openFailures) > 0 {
		p.unloaded = p.openFailures[0]
		p.keepReason(lineParts{"says": p.loadError})
	}
	p.loadError = ""
}

// nodePlace keeps the place of the test whose name follows.
func (p *toolParser) nodePlace(groups lineParts) {
	p.nextPlace.setPlace(groups["file"], groups["line"])
}

// nodeAgain sets the place of a failing test that is named again, after that place. A file that failed outside
// of tests has its path as name.
func (p *toolParser) nodeAgain(groups lineParts) {
	p.reopenFailure(groups)
	for _, t := range p.openFailures {
		t.File, t.Line = p.nextPlace.File, p.nextPlace.Line
		if strings.HasSuffix("/"+t.Name, "/"+t.File) {
			t.Name, t.Line, t.LoadError = t.File, 0, t == p.unloaded
		}
	}
	p.nextPlace = Test{}
}

// reopenFailure opens a failing test that was named before and has no line yet.
func (p *toolParser) reopenFailure(groups lineParts) {
	p.openFailures = nil
	name := clean(groups["name"], maxName)
	if p.suite != "" {
		name = p.fullName(groups)
	}
	for _, t := range p.tests {
		if t.Line == 0 && (t.Name == name || strings.HasSuffix(t.Name, " > "+name)) {
			p.openFailures = []*Test{t}
			return
		}
	}
}

// mochaCounts ends the open failures at the first total. The number of failures follows only if there are any.
func (p *toolParser) mochaCounts(lineParts) {
	p.hasTotals, p.section, p.openFailures = true, "counts", nil
}

// mochaTotals adds the number of failures, whose details follow.
func (p *toolParser) mochaTotals(groups lineParts) {
	p.addTotals(groups)
	p.section = "failing"
}

// mochaTitle collects the lines of a failing test's name, and adds the test after the last one, which ends in a
// colon.
func (p *toolParser) mochaTitle(groups lineParts) {
	if p.section == "failing" {
		p.title = nil
	}
	name, ends := strings.CutSuffix(groups["name"], ":")
	p.title = append(p.title, name)
	const maxTitleLines = 20
	if !ends && len(p.title) < maxTitleLines {
		p.section = "title"
		return
	}
	p.startFailure(lineParts{"name": strings.Join(p.title, " > ")})
	p.stopped = p.stopped || strings.HasPrefix(name, `"`) && strings.Contains(name, `" hook`) // a failed hook keeps other tests from running
	p.section, p.title = "failing", nil
}

// mochaSetsPlace sets the place of the open failures that have no line yet, from a stack frame in the test itself.
func (p *toolParser) mochaSetsPlace(groups lineParts) {
	for _, t := range p.openFailures {
		if t.Line == 0 {
			t.setPlace(groups["file"], groups["line"])
		}
	}
}

// cargoTarget begins the tests of a crate. Their names begin with the crate's.
func (p *toolParser) cargoTarget(groups lineParts) {
	p.suite, p.openFailures = "", nil
	if groups["suite"] != "" {
		p.suite = clean(groups["suite"], maxName)
	}
	if groups["file"] != "" {
		p.results.addUnit(File, groups["file"])
	}
}

// cargoBuildError records that a crate does not compile, so its tests do not run.
func (p *toolParser) cargoBuildError(lineParts) {
	p.openFailures, p.stopped = nil, true
}

// mavenClass records a class. Failing tests are named elsewhere.
func (p *toolParser) mavenClass(groups lineParts) {
	p.openFailures = nil
	if groups["skipped"] == "0" {
		p.results.addScope(scope{prefix: groups["class"] + "."})
	}
	p.results.addUnit(Class, groups["class"])
}

// rspecAgain sets the name and place of a failing example that was printed before.
func (p *toolParser) rspecAgain(groups lineParts) {
	p.reopenFailure(groups)
	if len(p.openFailures) == 0 {
		p.continueFailures(groups)
	}
	for _, t := range p.openFailures {
		t.Name = clean(groups["file"]+" > "+groups["name"], maxName)
		t.setPlace(groups["file"], groups["line"])
	}
	p.openFailures = nil
}

var phpunitFails = lazyregexp.New(`(?:Errors|Failures): [0-9]+`)

// phpunitTotals adds the errors and failures.
func (p *toolParser) phpunitTotals(groups lineParts) {
	p.addTotals(lineParts{"fails": strings.Join(phpunitFails().FindAllString(groups["others"], 2), " ")})
	p.section, p.openFailures = "", nil
}

// unittestLoad adds a module that could not be imported.
func (p *toolParser) unittestLoad(groups lineParts) {
	p.openFailures = nil
	file := strings.ReplaceAll(groups["module"], ".", "/") + ".py"
	p.openFailure(Test{Name: clean(groups["module"], maxName), File: clean(file, maxName), LoadError: true})
	p.skipsReason = true
}

// unittestFails adds a failing test. Its description may follow.
func (p *toolParser) unittestFails(groups lineParts) {
	p.startFailure(lineParts{"name": unittestName(groups)})
	p.skipsReason = true // a description may follow
}

func (p *toolParser) unittestPasses(groups lineParts) {
	p.recordPass(lineParts{"name": unittestName(groups)})
}

func (p *toolParser) unittestSkips(groups lineParts) {
	p.recordSkip(lineParts{"name": unittestName(groups)})
}

// unittestName returns a test's name after its class. Since Python 3.11, the class in the output
// includes the test.
func unittestName(groups lineParts) string {
	return strings.TrimSuffix(groups["suite"], "."+groups["name"]) + "." + groups["name"]
}
