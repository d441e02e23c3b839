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
	{tool: "jest", joined: " › ", groups: " › ", indent: 2, rules: []rule{
		{has: " ", fits: lazyregexp.New(`^(?P<end>PASS|FAIL) (?: *(?:\S+ +)??(?P<file>\S+\.[cm]?[jt]sx?)(?: \([0-9.]+ m?s\))?$)?`), does: (*printed).jestFile},
		{has: "  ● ", fits: lazyregexp.New(`^  ● \s*(?:Console|Cannot log after tests are done|Validation Warning|Deprecation Warning)`), does: (*printed).jestGoesOn}, // a message, not a test
		{has: "  ● ", fits: lazyregexp.New(`^  ● (?P<name>.*)$`), does: (*printed).jestFails},
		{has: "Tests:", fits: lazyregexp.New(`^Tests:(?P<counts> +(?:[0-9]+ [a-z]+, )*[0-9]+ total)$`), does: (*printed).jestTotals},
		{has: "Tests:", fits: lazyregexp.New(`^Tests:`), does: (*printed).jestGoesOn},
		{has: "Test Suites:", fits: lazyregexp.New(`^Test Suites:(?P<some>.* of )?`), does: func(p *printed, groups parts) { p.stopped = p.stopped || groups["some"] != "" }},
		{in: "failing", has: " at ", fits: lazyregexp.New(`^ +at .*?\(?(?P<file>[^ ()]+):(?P<line>[0-9]+):[0-9]+\)?$`), does: (*printed).jestPlace},
		{in: "files", fits: lazyregexp.New(`^(?P<in> {2,})(?P<mark>[✓✕√×○✎]) (?:skipped |todo )?(?P<name>.+?)(?: \([0-9.]+ m?s\))?$`), does: (*printed).jestTest},
		{in: "files", has: "  ", fits: lazyregexp.New(`^(?P<in> {2,})(?P<name>[^ ].*)$`), does: (*printed).group},
	}},
	{tool: "vitest", joined: " > ", rules: []rule{
		{has: " FAIL ", fits: lazyregexp.New(`^ FAIL +` + ofVitest + ` \[ (?P<path>.+) \]$`), does: (*printed).load},
		{has: " FAIL ", fits: lazyregexp.New(`^ FAIL +` + ofVitest + ` > (?P<name>.+)$`), does: (*printed).failed},
		{has: " ❯ ", fits: lazyregexp.New(`^ ❯ (?:.+ )?(?P<file>\S+):(?P<line>[0-9]+):[0-9]+$`), does: (*printed).frame},
		{has: " test", fits: lazyregexp.New(`^ [✓❯↓] ` + ofVitest + ` +\([1-9][0-9]* tests?(?P<counts>(?: \| [0-9]+ \w+)*)\)`), does: (*printed).vitestFile},
		{has: "✓ ", fits: lazyregexp.New(`^ ✓ ` + ofVitest + ` > (?P<name>.+?)(?: [0-9]+ms)?$`), does: (*printed).passes},
		{has: " > ", fits: lazyregexp.New(`^ [↓□] ` + ofVitest + ` > (?P<name>.+?)(?: \[skipped\])?$`), does: (*printed).skips},
		{has: "Test Files  ", fits: lazyregexp.New(`^ +Test Files  (?P<counts>.+) \((?P<of>[0-9]+)\)$`), does: (*printed).vitestFiles},
		{has: "Tests  ", fits: lazyregexp.New(`^ +Tests  (?:(?P<fails>[0-9]+) failed(?: \| )?)?(?:[0-9]+ \w+(?: \| )?)*(?:no tests| \([0-9]+\))$`), does: (*printed).totals},
		{has: "Errors  ", fits: lazyregexp.New(`^ +Errors  [0-9]+ errors?$`), does: (*printed).stops},
	}},
	{tool: "node's spec reporter", nested: true, rules: []rule{
		{has: "✖ failing tests:", fits: lazyregexp.New(`^✖ failing tests:$`), does: enter("failing")},
		{in: "failing", has: "test at ", fits: lazyregexp.New(`^test at (?P<file>.+):(?P<line>[0-9]+):[0-9]+$`), does: (*printed).nodePlace},
		{in: "failing", has: "✖ ", fits: lazyregexp.New(`^` + ofNode + `$`), does: (*printed).nodeAgain},
		{has: " # ", fits: lazyregexp.New(`^` + ofNode + ` # (?:SKIP|TODO)\b.*$`), does: (*printed).skips},
		{has: "✔ ", fits: lazyregexp.New(`^` + ofNode + `$`), does: (*printed).passes},
		{has: "✖ ", fits: lazyregexp.New(`^` + ofNode + `$`), does: (*printed).nodeFails},
		{has: "▶ ", fits: lazyregexp.New(`^ *▶ .+ \([0-9.]+ms\)$`), does: ignore}, // the end of a group
		{has: "▶ ", fits: lazyregexp.New(`^(?P<in> *)▶ (?P<name>.+)$`), does: (*printed).group},
		{has: "ℹ fail ", fits: lazyregexp.New(`^ℹ fail (?P<fails>[0-9]+)$`), does: (*printed).totals},
		{has: "ℹ cancelled ", fits: lazyregexp.New(`^ℹ cancelled [1-9][0-9]*$`), does: (*printed).stops},
		{has: "Error", fits: lazyregexp.New(`^(?P<says>(?:SyntaxError: |Error: Cannot find (?:module|package) '|Error \[ERR_MODULE_NOT_FOUND\]: ).*)$`), does: func(p *printed, groups parts) { p.noLoad = groups["says"] }},
	}},
	{tool: "mocha's spec reporter", section: "tree", indent: 2, rules: []rule{
		{has: " passing", fits: lazyregexp.New(`^  [0-9]+ passing(?: \(.+\))?$`), does: (*printed).mochaCounts},
		{in: "counts", has: " failing", fits: lazyregexp.New(`^  (?P<fails>[0-9]+) failing$`), does: (*printed).mochaTotals},
		{in: "failing", has: ") ", fits: lazyregexp.New(`^  [0-9]+\) (?P<name>.+)$`), does: (*printed).mochaTitle},
		{in: "failing", has: ") ", fits: lazyregexp.New(`^ +[0-9]+\) `), does: ignore},
		{in: "title", has: "       ", fits: lazyregexp.New(`^ {7,}(?P<name>\S.*)$`), does: (*printed).mochaTitle},
		{in: "failing", has: "Context.<anonymous> (", fits: lazyregexp.New(`^ +at (?:async )?Context\.<anonymous> \((?:file://)?(?P<file>[^()]+):(?P<line>[0-9]+):[0-9]+\)$`), does: (*printed).mochaPlace},
		{in: "tree", has: "✔ ", fits: lazyregexp.New(`^(?P<in> {2,})✔ (?P<name>.+?)(?: \([0-9]+ms\))?$`), does: (*printed).passes},
		{in: "tree", has: "✓ ", fits: lazyregexp.New(`^(?P<in> {2,})✓ (?P<name>.+?)(?: \([0-9]+ms\))?$`), does: (*printed).passes},
		{in: "tree", has: "  - ", fits: lazyregexp.New(`^(?P<in> {2,})- (?P<name>.+)$`), does: (*printed).skips},
		{in: "tree", has: ") ", fits: lazyregexp.New(`^ +[0-9]+\) `), does: ignore}, // named again below
		{in: "tree", has: "  ", fits: lazyregexp.New(`^(?P<in>(?:  )+)(?P<name>\S.*)$`), does: (*printed).group},
	}},
	{tool: "cargo test", joined: "::", rules: []rule{
		{has: "Running ", fits: lazyregexp.New(`^ +Running (?:unittests \S+ |unittests |(?P<file>\S+) )?\((?:\S*/)?(?P<suite>[^\s/]+)-[0-9a-f]{16}(?:\.exe)?\)$`), does: (*printed).cargoTarget},
		{has: "Doc-tests ", fits: lazyregexp.New(`^ +Doc-tests \S+$`), does: (*printed).cargoTarget},
		{has: "test ", fits: lazyregexp.New(ofCargo + `ok(?: <.*>)?$`), does: (*printed).passes},
		{has: "test ", fits: lazyregexp.New(ofCargo + `ignored(?:, .*)?$`), does: (*printed).skips},
		{has: "test ", fits: lazyregexp.New(ofCargo + `FAILED(?: <.*>)?$`), does: (*printed).alone},
		{has: "---- ", fits: lazyregexp.New(`^---- (?P<name>.+?)(?: \(line [0-9]+\))? stdout ----$`), does: (*printed).again},
		{has: "panicked at ", fits: lazyregexp.New(`panicked at (?P<file>[^\s']+):(?P<line>[0-9]+):[0-9]+:$`), does: (*printed).thrown},
		{has: "panicked at '", fits: lazyregexp.New(`panicked at '(?P<says>.*?)(?:', (?P<file>\S+):(?P<line>[0-9]+):[0-9]+)?$`), does: (*printed).thrown},
		{has: "failures:", fits: lazyregexp.New(`^failures:$`), does: enter("")},
		{has: "test result: ", fits: lazyregexp.New(`^test result: \w+\. [0-9]+ passed; (?P<fails>[0-9]+) failed;`), does: (*printed).totals},
		{has: "error: test failed, to rerun pass ", fits: lazyregexp.New(`^error: test failed, to rerun pass `), does: (*printed).stops},
		{has: "error: could not compile ", fits: lazyregexp.New("^error: could not compile `"), does: (*printed).noTarget},
		{has: " failed:", fits: lazyregexp.New(`^error: [0-9]+ targets? failed:$`), does: func(p *printed, _ parts) { p.stopped = false }},
	}},
	{tool: "Maven Surefire", joined: ".", rules: []rule{
		{has: "Tests run: ", fits: lazyregexp.New(ofMaven + `Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: (?P<skipped>[0-9]+),.* --? in (?P<class>[\w.$]+)$`), does: (*printed).mavenClass},
		{has: " <<< ", fits: lazyregexp.New(ofMaven + `(?P<name>[^\s()]+(?:\(.*\))?(?:\[.*\])?)\((?P<suite>[\w.$]+)\) +Time elapsed: .+ <<< (?:FAILURE|ERROR)!$`), does: (*printed).failed},
		{has: " <<< ", fits: lazyregexp.New(ofMaven + `(?P<name>[\w.$]+\S*?)(?:  | -- )Time elapsed: .+ <<< (?:FAILURE|ERROR)!$`), does: (*printed).failed},
		{has: "\tat ", fits: lazyregexp.New(`^\s+at \S+\((?P<file>\w+\.\w+):(?P<line>[0-9]+)\)$`), does: (*printed).frame},
		{has: "Results", fits: lazyregexp.New(ofMaven + `Results ?:$`), does: enter("")},
		{has: "Tests run: ", fits: lazyregexp.New(ofMaven + `Tests run: [0-9]+, (?P<fails>Failures: [0-9]+, Errors: [0-9]+), Skipped: [0-9]+(?:, Flakes: [0-9]+)?$`), does: (*printed).totals},
		{has: " SKIPPED", fits: lazyregexp.New(`^\[INFO\] .+ SKIPPED(?: \[.*\])?$`), does: (*printed).stops},
	}},
	{tool: "RSpec", rules: []rule{
		{has: "Pending:", fits: lazyregexp.New(`^Pending:`), does: enter("pending")},
		{has: "Failures:", fits: lazyregexp.New(`^Failures:$`), does: enter("failures")},
		{has: "Failed examples:", fits: lazyregexp.New(`^Failed examples:$`), does: enter("failed")},
		{has: "occurred while loading ", fits: lazyregexp.New(`^An error occurred while loading (?:\./)?(?P<file>\S+)\.$`), does: (*printed).load},
		{in: "failures", has: ") ", fits: lazyregexp.New(`^  [0-9]+\) (?P<name>.+)$`), does: (*printed).failed},
		{has: "Failure/Error:", fits: lazyregexp.New(`^ *Failure/Error:`), does: func(p *printed, _ parts) { p.holds = true }},
		{has: "Finished in ", fits: lazyregexp.New(`^Finished in `), does: enter("")},
		{in: "failed", has: "rspec ", fits: lazyregexp.New(`^rspec (?:'|\./)*(?P<file>[^\s:\[']+)(?::(?P<line>[0-9]+)|\[[0-9:]+\])'? # (?P<name>.+)$`), does: (*printed).rspecAgain},
		{has: " example", fits: lazyregexp.New(`^[0-9]+ examples?, (?P<fails>[0-9]+) failures?(?:, [0-9]+ pending)?(?:, [0-9]+ errors? occurred outside of examples)?$`), does: (*printed).totals},
	}},
	{tool: "PHPUnit", joined: "::", rules: []rule{
		{has: "There w", fits: lazyregexp.New(`^There (?:was|were) [0-9]+ (?:errors?|failures?):$`), does: enter("failures")},
		{has: "There w", fits: lazyregexp.New(`^There (?:was|were) `), does: enter("others")},
		{has: " triggered ", fits: lazyregexp.New(`^[0-9]+ tests? triggered `), does: enter("others")},
		{in: "failures", has: ") ", fits: lazyregexp.New(ofPHPUnit), does: (*printed).failed},
		{in: "failures", has: ".php:", fits: lazyregexp.New(`^(?P<file>\S+\.php):(?P<line>[0-9]+)$`), does: (*printed).frame},
		{has: "Tests: ", fits: lazyregexp.New(`^Tests: [0-9]+, Assertions: [0-9]+(?P<others>[^.]*)\.$`), does: (*printed).phpunitTotals},
		{has: "OK (", fits: lazyregexp.New(`^OK \([0-9]+ tests?, [0-9]+ assertions?\)$`), does: (*printed).totals},
		{fits: lazyregexp.New(`^[.EF][.EFWIRSDN]*$`), does: (*printed).stops}, // the last line of results lacks a percentage
	}},
	{tool: "ctest", rules: []rule{
		{has: "The following tests FAILED:", fits: lazyregexp.New(`^The following tests FAILED:$`), does: enter("failed")},
		{in: "failed", has: " - ", fits: lazyregexp.New(`^\t *[0-9]+ - (?P<name>.+) \((?P<says>[^()]+)\)(?: +.*)?$`), does: (*printed).alone},
		{has: " Test ", fits: lazyregexp.New(ofCTest + `Passed +[0-9.]+ sec`), does: (*printed).passes},
		{has: " Test ", fits: lazyregexp.New(ofCTest + `\*\*\*(?:Skipped|Not Run \(Disabled\))`), does: (*printed).skips},
		{has: " Test ", fits: lazyregexp.New(ofCTest + `\*\*\*`), does: (*printed).ran},
		{has: "% tests passed", fits: lazyregexp.New(`^[0-9]+% tests passed, (?P<fails>[0-9]+) tests? failed out of [0-9]+$`), does: (*printed).totals},
	}},
	{tool: "Gradle", joined: ".", rules: []rule{
		{has: " FAILED", fits: lazyregexp.New(`^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) FAILED$`), does: (*printed).fails},
		{has: " PASSED", fits: lazyregexp.New(`^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) PASSED$`), does: (*printed).passes},
		{has: " SKIPPED", fits: lazyregexp.New(`^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) SKIPPED$`), does: (*printed).skips},
		{has: " at ", fits: lazyregexp.New(`^    (?P<says>\S+) at (?P<file>[\w.]+):(?P<line>[0-9]+)$`), does: (*printed).frame},
		{has: " at ", fits: lazyregexp.New(`^ +at .*\((?P<file>\w+\.\w+):(?P<line>[0-9]+)\)$`), does: (*printed).frame},
		{has: " completed, ", fits: lazyregexp.New(`^[0-9]+ tests? completed, (?P<fails>[0-9]+) failed(?:, [0-9]+ skipped)?$`), does: (*printed).totals},
		{has: "Execution failed for task ':", fits: lazyregexp.New(`^Execution failed for task ':[^':]+:`), does: (*printed).stops}, // other projects may not have run
	}},
	{tool: "Python's unittest", rules: []rule{
		{has: "unittest.loader.", fits: lazyregexp.New(`^ERROR: (?P<module>[\w.]+) \(unittest\.loader\.(?:_FailedTest|ModuleImportFailure)[\w.]*\)$`), does: (*printed).unittestLoad},
		{has: " (", fits: lazyregexp.New(`^(?:ERROR|FAIL): (?P<name>\w+) \((?P<suite>[\w.]+)\)`), does: (*printed).unittestFails},
		{has: " ... ok", fits: lazyregexp.New(`^(?P<name>\w+) \((?P<suite>[\w.]+)\) \.\.\. ok$`), does: (*printed).unittestPasses},
		{has: " ... skipped ", fits: lazyregexp.New(`^(?P<name>\w+) \((?P<suite>[\w.]+)\) \.\.\. skipped `), does: (*printed).unittestSkips},
		{has: "  File \"", fits: lazyregexp.New(`^  File "(?P<file>[^"]+)", line (?P<line>[0-9]+), in `), does: (*printed).frame},
		{has: "    ", fits: lazyregexp.New(`^    `), does: ignore},
		{has: "Traceback ", fits: lazyregexp.New(`^Traceback \(most recent call last\):$`), does: ignore},
		{has: "------", fits: lazyregexp.New(`^-{70}$`), does: func(p *printed, _ parts) { p.holds = false }},
		{has: "Ran ", fits: lazyregexp.New(`^Ran [0-9]+ tests? in [0-9.]+s$`), does: (*printed).totals},
		{has: "FAILED (", fits: lazyregexp.New(`^FAILED \((?P<fails>(?:failures|errors)=[0-9]+(?:, errors=[0-9]+)?)`), does: (*printed).totals},
	}},
}

// jestFile begins the results of a file.
func (p *printed) jestFile(groups parts) {
	if groups["file"] == "" {
		return
	}
	file := clean(groups["file"], maxName)
	p.section, p.suite, p.around, p.open = "files", file, nil, nil
	p.told.unit(File, file)
	if groups["end"] == "PASS" {
		p.told.pass(file)
	}
	if p.files == nil {
		p.files = map[string]bool{}
	}
	if len(p.files) < maxScopes && !p.files[file] {
		p.files[file] = false
	}
}

// jestTest handles the line of a test.
func (p *printed) jestTest(groups parts) {
	if _, is := p.files[p.suite]; is {
		p.files[p.suite] = true
	}
	switch groups["mark"] {
	case "✓", "√":
		p.passes(groups)
	case "○", "✎":
		p.skips(groups)
	}
}

// jestFails begins the details of a failing test, or of a file that did not load.
func (p *printed) jestFails(groups parts) {
	if p.section == "" {
		return
	}
	if p.section = "failing"; strings.TrimSpace(groups["name"]) == "Test suite failed to run" {
		p.open = nil
		p.load(parts{"file": p.suite})
		delete(p.files, p.suite)
		return
	}
	p.fails(groups)
	for _, t := range p.open {
		t.File = p.suite
	}
}

// jestPlace handles a line of a stack trace. Only a place in the test's own file counts.
func (p *printed) jestPlace(groups parts) {
	for _, t := range p.open {
		if t.Line == 0 && strings.HasSuffix(groups["file"], p.suite) {
			t.Line = number(groups["line"])
		}
	}
}

// jestTotals handles the line with test totals. A file whose tests have no lines ran completely,
// unless some tests were skipped.
func (p *printed) jestTotals(groups parts) {
	p.totals(groups)
	for _, file := range slices.Sorted(maps.Keys(p.files)) {
		if !p.files[file] && !skippedSome(groups["counts"]) {
			p.told.addScope(scope{begins: file + p.joined})
		}
	}
	p.section, p.suite, p.files, p.open = "", "", nil, nil
}

// jestGoesOn ends the details of a failing test.
func (p *printed) jestGoesOn(parts) {
	if p.open = nil; p.section != "" {
		p.section = "files"
	}
}

// skippedSome reports whether totals count tests that did not run.
func skippedSome(counts string) bool {
	return strings.Contains(counts, "skipped") || strings.Contains(counts, "todo")
}

// vitestFile handles the line of a file. Failing tests are named elsewhere.
func (p *printed) vitestFile(groups parts) {
	p.told.unit(File, groups["file"])
	if !skippedSome(groups["counts"]) {
		p.told.addScope(scope{begins: p.named(groups)})
	}
}

// vitestFiles handles the line with file totals. It finds out whether some files did not run.
func (p *printed) vitestFiles(groups parts) {
	failed := strings.Contains(groups["counts"], "failed")
	p.stopped = p.stopped || sum(groups["counts"]) != number(groups["of"]) || failed && strings.Contains(groups["counts"], "skipped")
}

// nodeFails handles a failing test. If a load error was printed before, it belongs to this test.
func (p *printed) nodeFails(groups parts) {
	p.fails(groups)
	if p.noLoad != "" && len(p.open) > 0 {
		p.unloaded = p.open[0]
		p.says(parts{"says": p.noLoad})
	}
	p.noLoad = ""
}

// nodePlace handles the place of the test whose name follows.
func (p *printed) nodePlace(groups parts) {
	p.place.at(groups["file"], groups["line"])
}

// nodeAgain handles a failing test that is named again, after its place. A file that failed outside
// of tests has its path as name.
func (p *printed) nodeAgain(groups parts) {
	p.again(groups)
	for _, t := range p.open {
		t.File, t.Line = p.place.File, p.place.Line
		if strings.HasSuffix("/"+t.Name, "/"+t.File) {
			t.Name, t.Line, t.Load = t.File, 0, t == p.unloaded
		}
	}
	p.place = Test{}
}

// again opens a test that was named before and has no line yet.
func (p *printed) again(groups parts) {
	p.open = nil
	name := clean(groups["name"], maxName)
	if p.suite != "" {
		name = p.named(groups)
	}
	for _, t := range p.tests {
		if t.Line == 0 && (t.Name == name || strings.HasSuffix(t.Name, " > "+name)) {
			p.open = []*Test{t}
			return
		}
	}
}

// mochaCounts handles the first total. The number of failures follows only if there are any.
func (p *printed) mochaCounts(parts) {
	p.total, p.section, p.open = true, "counts", nil
}

// mochaTotals handles the number of failures.
func (p *printed) mochaTotals(groups parts) {
	p.totals(groups)
	p.section = "failing"
}

// mochaTitle handles a line of a failing test's name. The last line ends in a colon.
func (p *printed) mochaTitle(groups parts) {
	if p.section == "failing" {
		p.title = nil
	}
	name, ends := strings.CutSuffix(groups["name"], ":")
	if p.title = append(p.title, name); !ends && len(p.title) < 20 {
		p.section = "title"
		return
	}
	p.fails(parts{"name": strings.Join(p.title, " > ")})
	p.stopped = p.stopped || strings.HasPrefix(name, `"`) && strings.Contains(name, `" hook`) // a failed hook keeps other tests from running
	p.section, p.title = "failing", nil
}

// mochaPlace handles the line of a stack trace that is in the test itself.
func (p *printed) mochaPlace(groups parts) {
	for _, t := range p.open {
		if t.Line == 0 {
			t.at(groups["file"], groups["line"])
		}
	}
}

// cargoTarget begins the tests of a crate. Their names begin with the crate's.
func (p *printed) cargoTarget(groups parts) {
	p.suite, p.open = "", nil
	if groups["suite"] != "" {
		p.suite = clean(groups["suite"], maxName)
	}
	if groups["file"] != "" {
		p.told.unit(File, groups["file"])
	}
}

// noTarget handles a crate that does not compile.
func (p *printed) noTarget(parts) {
	p.open, p.stopped = nil, true
}

// mavenClass handles the line of a class. Failing tests are named elsewhere.
func (p *printed) mavenClass(groups parts) {
	if p.open = nil; groups["skipped"] == "0" {
		p.told.addScope(scope{begins: groups["class"] + "."})
	}
	p.told.unit(Class, groups["class"])
}

// rspecAgain handles the place of a failing example that was named before.
func (p *printed) rspecAgain(groups parts) {
	if p.again(groups); len(p.open) == 0 {
		p.failed(groups)
	}
	for _, t := range p.open {
		t.Name = clean(groups["file"]+" > "+groups["name"], maxName)
		t.at(groups["file"], groups["line"])
	}
	p.open = nil
}

var phpunitFails = lazyregexp.New(`(?:Errors|Failures): [0-9]+`)

// phpunitTotals handles the line with test totals.
func (p *printed) phpunitTotals(groups parts) {
	p.totals(parts{"fails": strings.Join(phpunitFails().FindAllString(groups["others"], 2), " ")})
	p.section, p.open = "", nil
}

// unittestLoad handles a module that could not be imported.
func (p *printed) unittestLoad(groups parts) {
	p.open = nil
	file := strings.ReplaceAll(groups["module"], ".", "/") + ".py"
	p.failing(Test{Name: clean(groups["module"], maxName), File: clean(file, maxName), Load: true})
	p.holds = true
}

func (p *printed) unittestFails(groups parts) {
	p.fails(parts{"name": unittestName(groups)})
	p.holds = true // a description may follow
}

func (p *printed) unittestPasses(groups parts) { p.passes(parts{"name": unittestName(groups)}) }
func (p *printed) unittestSkips(groups parts)  { p.skips(parts{"name": unittestName(groups)}) }

// unittestName returns a test's name after its class. Since Python 3.11, the class in the output
// includes the test.
func unittestName(of parts) string {
	return strings.TrimSuffix(of["suite"], "."+of["name"]) + "." + of["name"]
}
