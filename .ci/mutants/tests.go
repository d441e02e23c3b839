package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// test is one test function.
type test struct {
	name, file  string
	line, lines int
	took        time.Duration
	reaches     map[int]bool // numbers of mutants
}

func (t *test) killsOf(mutants []*mutant) int {
	kills := 0
	for _, m := range mutants {
		if slices.Contains(m.killers, t.name) {
			kills++
		}
	}
	return kills
}

func testsOf(pkg *goPackage) ([]*test, error) {
	var tests []*test
	for _, name := range slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !regexp.MustCompile(`^(Test|Fuzz|Example)($|[^a-z])`).MatchString(fn.Name.Name) || fn.Name.Name == "TestMain" {
				continue
			}
			line := files.Position(fn.Pos()).Line
			tests = append(tests, &test{name: fn.Name.Name, file: name, line: line, lines: files.Position(fn.End()).Line - line + 1})
		}
	}
	return tests, nil
}

// measure runs each test alone on the code without a mutant, which tells what mutants it reaches
// and how long it takes, and then for each mutant the tests that reach it. A mutant that no test
// seems to reach may be reached by processes that could not tell: all tests run for it.
func measure(ctx context.Context, pkg *goPackage, bin string, mutants []*mutant, skip string, slowest time.Duration, also []*others) (*result, error) {
	tests, err := testsOf(pkg)
	if err != nil {
		return nil, err
	}
	skipped, err := regexp.Compile(skip)
	if err != nil {
		return nil, err
	}
	r := &result{mutants: mutants}
	runner := &runner{pkg: pkg, bin: filepath.Join(filepath.Dir(bin), "chosen.test"), reached: filepath.Join(filepath.Dir(bin), "reached")}
	if err := choose(bin, runner.bin, 0); err != nil {
		return nil, err
	}
	for _, t := range tests {
		if skip != "" && skipped.MatchString(t.name) {
			r.left = append(r.left, t.name+": skipped")
			continue
		}
		if err := os.WriteFile(runner.reached, nil, 0o600); err != nil {
			return nil, err
		}
		start := time.Now()
		ended := runner.start(ctx, []*test{t}, 10*slowest)
		t.took = time.Since(start)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case ended[t.name] != "PASS":
			r.left = append(r.left, fmt.Sprintf("%s: not green without a mutant (%s)", t.name, ended[t.name]))
			continue
		case t.took > slowest:
			r.left = append(r.left, fmt.Sprintf("%s: takes %s", t.name, t.took.Round(time.Millisecond)))
			continue
		}
		if t.reaches, err = numbers(runner.reached); err != nil {
			return nil, err
		}
		r.tests = append(r.tests, t)
	}
	for i, m := range mutants {
		reaching := slices.DeleteFunc(slices.Clone(r.tests), func(t *test) bool { return !t.reaches[i+1] })
		m.reached = len(reaching) > 0
		if !m.reached {
			reaching = r.tests
		}
		if err := choose(bin, runner.bin, i+1); err != nil {
			return nil, err
		}
		m.killers = runner.killers(ctx, reaching)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for _, o := range also {
		if err := o.measure(ctx, filepath.Dir(bin), mutants); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func numbers(path string) (map[int]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for word := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		found[n] = true
	}
	return found, nil
}

type runner struct {
	pkg          *goPackage
	bin, reached string
}

// killers returns the tests that fail. A test that ends the process has the others run again; if
// several ran when the process ended, each runs alone.
func (r *runner) killers(ctx context.Context, tests []*test) []string {
	var killers []string
	for len(tests) > 0 && ctx.Err() == nil {
		var limit time.Duration
		for _, t := range tests {
			limit += t.took
		}
		ended := r.start(ctx, tests, 2*limit+5*time.Second)
		var open, fresh []*test
		for _, t := range tests {
			switch state := ended[t.name]; state {
			case "FAIL":
				killers = append(killers, t.name)
			case "RUN":
				open = append(open, t)
			case "":
				fresh = append(fresh, t)
			}
		}
		switch {
		case len(tests) == 1:
			if ended[tests[0].name] == "RUN" || ended[tests[0].name] == "" {
				killers = append(killers, tests[0].name)
			}
			return killers
		case len(open) == 1:
			killers = append(killers, open[0].name)
		case len(open) == 0 && len(fresh) == len(tests):
			// The process ended before the first test: all of them notice that.
			for _, t := range tests {
				killers = append(killers, t.name)
			}
			return killers
		default:
			for _, t := range open {
				killers = append(killers, r.killers(ctx, []*test{t})...)
			}
		}
		tests = fresh
	}
	return killers
}

// start runs tests and returns how each ended; RUN marks a test without an end.
func (r *runner) start(ctx context.Context, tests []*test, limit time.Duration) map[string]string {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	ctx, stop := context.WithTimeout(ctx, limit+5*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, r.bin, "-test.v=test2json", "-test.run=^("+strings.Join(names, "|")+")$", "-test.timeout="+limit.String())
	cmd.Dir = r.pkg.Dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "RAPID_NOFAILFILE=true") // what failed by one mutant would be tried with the next
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	ended := map[string]string{}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		// Each line about a test starts with this mark, wherever the line before ended.
		_, line, _ := strings.Cut(lines.Text(), "\x16")
		if m := regexp.MustCompile(`^(?:=== (RUN)  |--- (FAIL|PASS|SKIP):) ([^ /]+)( |$)`).FindStringSubmatch(line); m != nil {
			ended[m[3]] = m[1] + m[2]
		}
	}
	return ended
}

// others are tests of another package, which contain the mutated one or build programs that do, as
// scripts do.
type others struct{ pkg, run string }

// measure runs the others for each mutant that the package's own tests do not kill.
func (o *others) measure(ctx context.Context, dir string, mutants []*mutant) error {
	pkg, err := load(ctx, o.pkg)
	if err != nil {
		return err
	}
	bin, overlay := filepath.Join(dir, "others.test"), filepath.Join(dir, "overlay.json")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-p=1", "-ldflags=-w", "-overlay", overlay, "-o", bin, pkg.ImportPath)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOMAXPROCS=1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the tests of %s: %w:\n%s", pkg.ImportPath, err, out)
	}
	run := func(number int) error {
		if err := os.WriteFile(filepath.Join(dir, "chosen"), fmt.Appendf(nil, "%06d", number), 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, bin, "-test.run="+o.run, "-test.failfast", "-test.timeout=5m")
		cmd.Dir = pkg.Dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -overlay="+overlay)
		return cmd.Run()
	}
	if err := os.WriteFile(filepath.Join(dir, "reached"), nil, 0o666); err != nil {
		return err
	}
	if err := run(0); err != nil {
		return fmt.Errorf("run %s of %s without a mutant: %w", o.run, o.pkg, err)
	}
	reached, err := numbers(filepath.Join(dir, "reached"))
	if err != nil {
		return err
	}
	for i, m := range mutants {
		if len(m.killers) > 0 || !reached[i+1] {
			continue
		}
		m.reached = true
		err := run(i + 1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m.killers = []string{o.pkg}
		}
	}
	return nil
}
