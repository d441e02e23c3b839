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
	ofNode    = ` (?P<name>.+?)(?: \([0-9.]+ms\))?`
	ofMaven   = `^(?:\[(?:ERROR|INFO|WARNING)\] +)?`
	ofCargo   = `^test (?P<name>.+?)(?: \(line [0-9]+\))?(?: - (?:should panic|compile fail|compile))* \.\.\. `
	ofCTest   = `^ *(?P<at>[0-9]+)/(?P<of>[0-9]+) Test +#[0-9]+: (?P<name>.+?) \.+ *`
	ofPHPUnit = `^[0-9]+\) (?P<suite>[\w\\]+)::(?P<name>\w+(?: with data set (?:#[0-9]+|"[^"]*"|@\S+))?)(?: \(.*\))?$`
)

// printers lists the tools whose default output is parsed. Other lines are skipped. The patterns
// come from real output in testdata.
var printers = []layout{
	// jest
	{suiteSeparator: " › ", groupSeparator: " › ", indent: 2, rules: []rule{
		{pattern: `^(?P<end>PASS|FAIL) (?: *(?:\S+ +)??(?P<file>\S+\.[cm]?[jt]sx?)(?: \([0-9.]+ m?s\))?$)?`, action: jestFile},
		{pattern: `^  ● \s*(?:Console|Cannot log after tests are done|Validation Warning|Deprecation Warning)`, action: jestEndsFailure}, // a message, not a test
		{pattern: `^  ● (?P<name>.*)$`, action: jestFails},
		{pattern: `^Tests:(?P<counts> +(?:[0-9]+ [a-z]+, )*[0-9]+ total)$`, action: jestTotals},
		{pattern: `^Tests:`, action: jestEndsFailure},
		{pattern: `^Test Suites:(?P<some>.* of )?`, action: func(p *toolParser, groups lineParts) { p.stopped = p.stopped || groups["some"] != "" }},
		{section: "failing", pattern: `^ +at .*?\(?(?P<file>[^ ()]+):(?P<line>[0-9]+):[0-9]+\)?$`, action: jestSetsLine},
		{section: "files", pattern: `^(?P<in> {2,})(?P<mark>[✓✕√×○✎]) (?:skipped |todo )?(?P<name>.+?)(?: \([0-9.]+ m?s\))?$`, action: jestTest},
		{section: "files", pattern: `^(?P<in> {2,})(?P<name>[^ ].*)$`, action: enterGroup},
	}},
	// vitest
	{suiteSeparator: " > ", rules: []rule{
		{pattern: `^ FAIL +` + ofVitest + ` \[ (?P<path>.+) \]$`, action: recordLoadError},
		{pattern: `^ FAIL +` + ofVitest + ` > (?P<name>.+)$`, action: continueFailures},
		{pattern: `^ ❯ (?:.+ )?(?P<file>\S+):(?P<line>[0-9]+):[0-9]+$`, action: considerFrame},
		{pattern: `^ [✓❯↓] ` + ofVitest + ` +\([1-9][0-9]* tests?(?P<counts>(?: \| [0-9]+ \w+)*)\)`, action: vitestFile},
		{pattern: `^ ✓ ` + ofVitest + ` > (?P<name>.+?)(?: [0-9]+ms)?$`, action: recordPass},
		{pattern: `^ [↓□] ` + ofVitest + ` > (?P<name>.+?)(?: \[skipped\])?$`, action: recordSkip},
		{pattern: `^ +Test Files  (?P<counts>.+) \((?P<of>[0-9]+)\)$`, action: vitestFiles},
		{pattern: `^ +Tests  (?:(?P<fails>[0-9]+) failed(?: \| )?)?(?:[0-9]+ \w+(?: \| )?)*(?:no tests| \([0-9]+\))$`, action: addTotals},
		{pattern: `^ +Errors  [0-9]+ errors?$`, action: markStopped},
	}},
	// node's spec reporter
	{failsGroups: true, rules: []rule{
		{pattern: `^✖ failing tests:$`, action: enterSection("failing")},
		{section: "failing", pattern: `^test at (?P<file>.+):(?P<line>[0-9]+):[0-9]+$`, action: nodePlace},
		{section: "failing", pattern: `^(?P<in> *)✖` + ofNode + `$`, action: nodeAgain},
		{pattern: `^(?P<in> *)[✔✖﹣⚠]` + ofNode + ` # (?:SKIP|TODO)\b.*$`, action: recordSkip},
		{pattern: `^(?P<in> *)✔` + ofNode + `$`, action: recordPass},
		{pattern: `^(?P<in> *)✖` + ofNode + `$`, action: nodeFails},
		{pattern: `^ *▶ .+ \([0-9.]+ms\)$`, action: ignoreLine}, // the end of a group
		{pattern: `^(?P<in> *)▶ (?P<name>.+)$`, action: enterGroup},
		{pattern: `^ℹ fail (?P<fails>[0-9]+)$`, action: addTotals},
		{pattern: `^ℹ cancelled [1-9][0-9]*$`, action: markStopped},
		{pattern: `^(?P<says>(?:SyntaxError: |Error: Cannot find (?:module|package) '|Error \[ERR_MODULE_NOT_FOUND\]: ).*)$`, action: func(p *toolParser, groups lineParts) { p.loadError = groups["says"] }},
	}},
	// mocha's spec reporter
	{section: "tree", indent: 2, rules: []rule{
		{pattern: `^  [0-9]+ passing(?: \(.+\))?$`, action: mochaCounts},
		{section: "counts", pattern: `^  (?P<fails>[0-9]+) failing$`, action: mochaTotals},
		{section: "failing", pattern: `^  [0-9]+\) (?P<name>.+)$`, action: mochaTitle},
		{section: "failing", pattern: `^ +[0-9]+\) `, action: ignoreLine},
		{section: "title", pattern: `^ {7,}(?P<name>\S.*)$`, action: mochaTitle},
		{section: "failing", pattern: `^ +at (?:async )?Context\.<anonymous> \((?:file://)?(?P<file>[^()]+):(?P<line>[0-9]+):[0-9]+\)$`, action: mochaSetsPlace},
		{section: "tree", pattern: `^(?P<in> {2,})✔ (?P<name>.+?)(?: \([0-9]+ms\))?$`, action: recordPass},
		{section: "tree", pattern: `^(?P<in> {2,})✓ (?P<name>.+?)(?: \([0-9]+ms\))?$`, action: recordPass},
		{section: "tree", pattern: `^(?P<in> {2,})- (?P<name>.+)$`, action: recordSkip},
		{section: "tree", pattern: `^ +[0-9]+\) `, action: ignoreLine}, // named again below
		{section: "tree", pattern: `^(?P<in>(?:  )+)(?P<name>\S.*)$`, action: enterGroup},
	}},
	// cargo test
	{suiteSeparator: "::", rules: []rule{
		{pattern: `^ +Running (?:unittests \S+ |unittests |(?P<file>\S+) )?\((?:\S*/)?(?P<suite>[^\s/]+)-[0-9a-f]{16}(?:\.exe)?\)$`, action: cargoTarget},
		{pattern: `^ +Doc-tests \S+$`, action: cargoTarget},
		{pattern: ofCargo + `ok(?: <.*>)?$`, action: recordPass},
		{pattern: ofCargo + `ignored(?:, .*)?$`, action: recordSkip},
		{pattern: ofCargo + `FAILED(?: <.*>)?$`, action: recordFailure},
		{pattern: `^---- (?P<name>.+?)(?: \(line [0-9]+\))? stdout ----$`, action: reopenFailure},
		{pattern: `panicked at (?P<file>[^\s']+):(?P<line>[0-9]+):[0-9]+:$`, action: setThrowSite},
		{pattern: `panicked at '(?P<says>.*?)(?:', (?P<file>\S+):(?P<line>[0-9]+):[0-9]+)?$`, action: setThrowSite},
		{pattern: `^failures:$`, action: enterSection("")},
		{pattern: `^test result: \w+\. [0-9]+ passed; (?P<fails>[0-9]+) failed;`, action: addTotals},
		{pattern: `^error: test failed, to rerun pass `, action: markStopped},
		{pattern: "^error: could not compile `", action: cargoBuildError},
		{pattern: `^error: [0-9]+ targets? failed:$`, action: func(p *toolParser, _ lineParts) { p.stopped = false }},
	}},
	// Maven Surefire
	{suiteSeparator: ".", rules: []rule{
		{pattern: ofMaven + `Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: (?P<skipped>[0-9]+),.* --? in (?P<class>[\w.$]+)$`, action: mavenClass},
		{pattern: ofMaven + `(?P<name>[^\s()]+(?:\(.*\))?(?:\[.*\])?)\((?P<suite>[\w.$]+)\) +Time elapsed: .+ <<< (?:FAILURE|ERROR)!$`, action: continueFailures},
		{pattern: ofMaven + `(?P<name>[\w.$]+\S*?)(?:  | -- )Time elapsed: .+ <<< (?:FAILURE|ERROR)!$`, action: continueFailures},
		{pattern: `^\s*\tat \S+\((?P<file>\w+\.\w+):(?P<line>[0-9]+)\)$`, action: considerFrame},
		{pattern: ofMaven + `Results ?:$`, action: enterSection("")},
		{pattern: ofMaven + `Tests run: [0-9]+, (?P<fails>Failures: [0-9]+, Errors: [0-9]+), Skipped: [0-9]+(?:, Flakes: [0-9]+)?$`, action: addTotals},
		{pattern: `^\[INFO\] .+ SKIPPED(?: \[.*\])?$`, action: markStopped},
	}},
	// RSpec
	{rules: []rule{
		{pattern: `^Pending:`, action: enterSection("pending")},
		{pattern: `^Failures:$`, action: enterSection("failures")},
		{pattern: `^Failed examples:$`, action: enterSection("failed")},
		{pattern: `^An error occurred while loading (?:\./)?(?P<file>\S+)\.$`, action: recordLoadError},
		{section: "failures", pattern: `^  [0-9]+\) (?P<name>.+)$`, action: continueFailures},
		{pattern: `^ *Failure/Error:`, action: func(p *toolParser, _ lineParts) { p.skipsReason = true }},
		{pattern: `^Finished in `, action: enterSection("")},
		{section: "failed", pattern: `^rspec (?:'|\./)*(?P<file>[^\s:\[']+)(?::(?P<line>[0-9]+)|\[[0-9:]+\])'? # (?P<name>.+)$`, action: rspecAgain},
		{pattern: `^[0-9]+ examples?, (?P<fails>[0-9]+) failures?(?:, [0-9]+ pending)?(?:, [0-9]+ errors? occurred outside of examples)?$`, action: addTotals},
	}},
	// PHPUnit
	{suiteSeparator: "::", rules: []rule{
		{pattern: `^There (?:was|were) [0-9]+ (?:errors?|failures?):$`, action: enterSection("failures")},
		{pattern: `^There (?:was|were) `, action: enterSection("others")},
		{pattern: `^[0-9]+ tests? triggered `, action: enterSection("others")},
		{section: "failures", pattern: ofPHPUnit, action: continueFailures},
		{section: "failures", pattern: `^(?P<file>\S+\.php):(?P<line>[0-9]+)$`, action: considerFrame},
		{pattern: `^Tests: [0-9]+, Assertions: [0-9]+(?P<others>[^.]*)\.$`, action: phpunitTotals},
		{pattern: `^OK \([0-9]+ tests?, [0-9]+ assertions?\)$`, action: addTotals},
		{pattern: `^[.EF][.EFWIRSDN]*$`, action: markStopped}, // the last line of results lacks a percentage
	}},
	// ctest
	{rules: []rule{
		{pattern: `^The following tests FAILED:$`, action: enterSection("failed")},
		{section: "failed", pattern: `^\t *[0-9]+ - (?P<name>.+) \((?P<says>[^()]+)\)(?: +.*)?$`, action: recordFailure},
		{pattern: ofCTest + `Passed +[0-9.]+ sec`, action: recordPass},
		{pattern: ofCTest + `\*\*\*(?:Skipped|Not Run \(Disabled\))`, action: recordSkip},
		{pattern: ofCTest + `\*\*\*`, action: recordFile},
		{pattern: `^[0-9]+% tests passed, (?P<fails>[0-9]+) tests? failed out of [0-9]+$`, action: addTotals},
	}},
	// Gradle
	{suiteSeparator: ".", rules: []rule{
		{pattern: `^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) FAILED$`, action: startFailure},
		{pattern: `^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) PASSED$`, action: recordPass},
		{pattern: `^(?P<suite>[^\s>][^>]*?) > (?P<name>.+) SKIPPED$`, action: recordSkip},
		{pattern: `^    (?P<says>\S+) at (?P<file>[\w.]+):(?P<line>[0-9]+)$`, action: considerFrame},
		{pattern: `^ +at .*\((?P<file>\w+\.\w+):(?P<line>[0-9]+)\)$`, action: considerFrame},
		{pattern: `^[0-9]+ tests? completed, (?P<fails>[0-9]+) failed(?:, [0-9]+ skipped)?$`, action: addTotals},
		{pattern: `^Execution failed for task ':[^':]+:`, action: markStopped}, // other projects may not have run
	}},
	// Python's unittest
	{suiteSeparator: ".", rules: []rule{
		{pattern: `^ERROR: (?P<module>[\w.]+) \(unittest\.loader\.(?:_FailedTest|ModuleImportFailure)[\w.]*\)$`, action: unittestLoad},
		{pattern: `^(?:ERROR|FAIL): (?P<name>\w+) \((?P<suite>[\w.]+)\)`, action: ofClass(unittestFails)},
		{pattern: `^(?P<name>\w+) \((?P<suite>[\w.]+)\) \.\.\. ok$`, action: ofClass(recordPass)},
		{pattern: `^(?P<name>\w+) \((?P<suite>[\w.]+)\) \.\.\. skipped `, action: ofClass(recordSkip)},
		{pattern: `^  File "(?P<file>[^"]+)", line (?P<line>[0-9]+), in `, action: considerFrame},
		{pattern: `^    `, action: ignoreLine},
		{pattern: `^Traceback \(most recent call last\):$`, action: ignoreLine},
		{pattern: `^-{70}$`, action: func(p *toolParser, _ lineParts) { p.skipsReason = false }},
		{pattern: `^Ran [0-9]+ tests? in [0-9.]+s$`, action: addTotals},
		{pattern: `^FAILED \((?P<fails>(?:failures|errors)=[0-9]+(?:, errors=[0-9]+)?)`, action: addTotals},
	}},
}

// jestFile begins the results of a file.
func jestFile(p *toolParser, groups lineParts) {
	if groups["file"] == "" {
		return
	}
	file := cleanLine(groups["file"])
	p.section, p.suite, p.groupPath, p.openFailures = "files", file, nil, nil
	p.results.addUnit(File, file)
	if groups["end"] == "PASS" {
		p.results.addPassed(file)
	}
	if p.files == nil {
		p.files = map[string]bool{}
	}
	if len(p.files) < maxScopes && !p.files[file] {
		p.files[file] = false // until jestTest finds a test of it
	}
}

// jestTest records a test that passed or was skipped. It also notes that the file's tests have lines.
func jestTest(p *toolParser, groups lineParts) {
	if _, found := p.files[p.suite]; found {
		p.files[p.suite] = true
	}
	switch groups["mark"] {
	case "✓", "√":
		recordPass(p, groups)
	case "○", "✎":
		recordSkip(p, groups)
	}
}

// jestFails begins the details of a failing test, or of a file that did not load.
func jestFails(p *toolParser, groups lineParts) {
	if p.section == "" {
		return
	}
	p.section = "failing"
	if strings.TrimSpace(groups["name"]) == "Test suite failed to run" {
		p.openFailures = nil
		recordLoadError(p, lineParts{"file": p.suite})
		delete(p.files, p.suite)
		return
	}
	startFailure(p, groups)
	for _, t := range p.openFailures {
		t.File = p.suite
	}
}

// jestSetsLine sets the line of the open failures that have none yet, from a stack frame in their own file.
func jestSetsLine(p *toolParser, groups lineParts) {
	for _, t := range p.openFailures {
		if t.Line == 0 && strings.HasSuffix(groups["file"], p.suite) {
			t.Line = parseNumber(groups["line"])
		}
	}
}

// jestTotals adds the test totals. A file without lines for tests ran completely, unless some were skipped.
func jestTotals(p *toolParser, groups lineParts) {
	addTotals(p, groups)
	for _, file := range slices.Sorted(maps.Keys(p.files)) {
		listsEachTest := p.files[file]
		if !listsEachTest && !skippedSome(groups["counts"]) {
			p.results.addScope(scope{prefix: file + p.suiteSeparator})
		}
	}
	p.section, p.suite, p.files, p.openFailures = "", "", nil, nil
}

// jestEndsFailure ends the details of a failing test.
func jestEndsFailure(p *toolParser, _ lineParts) {
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
func vitestFile(p *toolParser, groups lineParts) {
	p.results.addUnit(File, groups["file"])
	if !skippedSome(groups["counts"]) {
		p.results.addScope(scope{prefix: p.fullName(groups)})
	}
}

// vitestFiles records whether some files did not run, by the file totals.
func vitestFiles(p *toolParser, groups lineParts) {
	counts := groups["counts"]
	missesSome := sumNumbers(counts) != parseNumber(groups["of"])
	skippedAfterFailure := strings.Contains(counts, "failed") && strings.Contains(counts, "skipped")
	p.stopped = p.stopped || missesSome || skippedAfterFailure
}

// nodeFails adds a failing test. If a load error was printed before, it belongs to this test.
func nodeFails(p *toolParser, groups lineParts) {
	startFailure(p, groups)
	if p.loadError != "" && len(p.openFailures) > 0 {
		p.unloaded = p.openFailures[0]
		p.keepReason(p.loadError)
	}
	p.loadError = ""
}

// nodePlace keeps the place of the test whose name follows.
func nodePlace(p *toolParser, groups lineParts) {
	p.nextPlace.setPlace(groups["file"], groups["line"])
}

// nodeAgain sets the place of a failing test that is named again. A failed file has its path as name.
func nodeAgain(p *toolParser, groups lineParts) {
	reopenFailure(p, groups)
	for _, t := range p.openFailures {
		t.File, t.Line = p.nextPlace.File, p.nextPlace.Line
		if strings.HasSuffix("/"+t.Name, "/"+t.File) {
			t.Name, t.Line, t.LoadError = t.File, 0, t == p.unloaded
		}
	}
	p.nextPlace = Test{}
}

// reopenFailure opens a failing test that was named before and has no line yet.
func reopenFailure(p *toolParser, groups lineParts) {
	p.openFailures = nil
	name := cleanLine(groups["name"])
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
func mochaCounts(p *toolParser, _ lineParts) {
	p.hasTotals, p.section, p.openFailures = true, "counts", nil
}

// mochaTotals adds the number of failures, whose details follow.
func mochaTotals(p *toolParser, groups lineParts) {
	addTotals(p, groups)
	p.section = "failing"
}

// mochaTitle collects the lines of a failing test's name, up to the last one, which ends in a colon.
func mochaTitle(p *toolParser, groups lineParts) {
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
	startFailure(p, lineParts{"name": strings.Join(p.title, " > ")})
	p.stopped = p.stopped || strings.HasPrefix(name, `"`) && strings.Contains(name, `" hook`) // a failed hook keeps other tests from running
	p.section, p.title = "failing", nil
}

// mochaSetsPlace sets the place of the open failures that have no line yet, from a stack frame in the test itself.
func mochaSetsPlace(p *toolParser, groups lineParts) {
	for _, t := range p.openFailures {
		if t.Line == 0 {
			t.setPlace(groups["file"], groups["line"])
		}
	}
}

// cargoTarget begins the tests of a crate. Their names begin with the crate's.
func cargoTarget(p *toolParser, groups lineParts) {
	p.suite, p.openFailures = "", nil
	if groups["suite"] != "" {
		p.suite = cleanLine(groups["suite"])
	}
	if groups["file"] != "" {
		p.results.addUnit(File, groups["file"])
	}
}

// cargoBuildError records that a crate does not compile, so its tests do not run.
func cargoBuildError(p *toolParser, _ lineParts) {
	p.openFailures, p.stopped = nil, true
}

// mavenClass records a class. Failing tests are named elsewhere.
func mavenClass(p *toolParser, groups lineParts) {
	p.openFailures = nil
	if groups["skipped"] == "0" {
		p.results.addScope(scope{prefix: groups["class"] + "."})
	}
	p.results.addUnit(Class, groups["class"])
}

// rspecAgain sets the name and place of a failing example that was printed before.
func rspecAgain(p *toolParser, groups lineParts) {
	reopenFailure(p, groups)
	if len(p.openFailures) == 0 {
		continueFailures(p, groups)
	}
	for _, t := range p.openFailures {
		t.Name = cleanLine(groups["file"] + " > " + groups["name"])
		t.setPlace(groups["file"], groups["line"])
	}
	p.openFailures = nil
}

var phpunitFails = lazyregexp.New(`(?:Errors|Failures): [0-9]+`)

// phpunitTotals adds the errors and failures.
func phpunitTotals(p *toolParser, groups lineParts) {
	addTotals(p, lineParts{"fails": strings.Join(phpunitFails().FindAllString(groups["others"], 2), " ")})
	p.section, p.openFailures = "", nil
}

// unittestLoad adds a module that could not be imported.
func unittestLoad(p *toolParser, groups lineParts) {
	p.openFailures = nil
	file := strings.ReplaceAll(groups["module"], ".", "/") + ".py"
	p.openFailure(Test{Name: cleanLine(groups["module"]), File: cleanLine(file), LoadError: true})
	p.skipsReason = true
}

// unittestFails adds a failing test. Its description may follow.
func unittestFails(p *toolParser, groups lineParts) {
	startFailure(p, groups)
	p.skipsReason = true // a description may follow
}

// ofClass returns an action for a test of a class. Since Python 3.11, the class in the output includes the test.
func ofClass(do func(*toolParser, lineParts)) func(*toolParser, lineParts) {
	return func(p *toolParser, groups lineParts) {
		groups["suite"] = strings.TrimSuffix(groups["suite"], "."+groups["name"])
		do(p, groups)
	}
}
