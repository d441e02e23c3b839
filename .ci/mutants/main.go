// Mutants measures which tests of a package hold what: it seeds faults in the package's code and
// notes which tests fail by each.
//
//	go run ./.ci/mutants -seed 1 -n 30 ./gitops/charset
//
// All mutants are in one test binary, so a package is compiled once: each fault is an extra
// condition in the code, which asks for the number of the chosen mutant. That number is written
// into copies of the binary, and not into the environment, because tests start their own binary
// with environments that they choose.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "which mutants are chosen")
	n := flags.Int("n", 30, "how many mutants a package gets")
	other := flags.String("other", "", "folder of another version of the package: only faults that both have, for a comparison of their tests")
	skip := flags.String("skip", "", "tests that are left out, as a regular expression")
	slowest := flags.Duration("slowest", 20*time.Second, "tests that take longer than this alone are left out")
	var also []*others
	flags.Func("also", "PACKAGE:REGEXP, tests of another package for what the package's own tests do not kill; several times", func(value string) error {
		if value == "" { // of make
			return nil
		}
		pkg, run, ok := strings.Cut(value, ":")
		if !ok {
			return errors.New("want PACKAGE:REGEXP")
		}
		also = append(also, &others{pkg, run})
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name at least one package")
	}
	for _, name := range flags.Args() {
		pkg, err := load(ctx, name)
		if err != nil {
			return err
		}
		mutants, bin, err := compile(ctx, pkg, *other, *seed, *n)
		if err != nil {
			return fmt.Errorf("compile the mutants of %s: %w", pkg.ImportPath, err)
		}
		result, err := measure(ctx, pkg, bin, mutants, *skip, *slowest, also)
		os.RemoveAll(filepath.Dir(bin))
		if err != nil {
			return fmt.Errorf("test the mutants of %s: %w", pkg.ImportPath, err)
		}
		fmt.Fprintf(out, "# %s, seed %d\n", pkg.ImportPath, *seed)
		result.print(out)
	}
	return nil
}

// result is the outcome for one package.
type result struct {
	mutants []*mutant
	tests   []*test
	left    []string // tests left out, with the reason
}

func (r *result) print(out io.Writer) {
	killed, byOthers := 0, 0
	for _, m := range r.mutants {
		if len(m.killers) > 0 {
			killed++
		}
		if r.byOthers(m) {
			byOthers++
		}
	}
	fmt.Fprintf(out, "score: %d of %d mutants killed, %d by %d tests and %d by others alone\n", killed, len(r.mutants), killed-byOthers, len(r.tests), byOthers)
	for _, m := range r.mutants {
		switch {
		case r.byOthers(m):
			fmt.Fprintf(out, "killed by others alone: %s: %s\n", m.where, m.what)
		case len(m.killers) > 0:
		case m.reached:
			fmt.Fprintf(out, "survived: %s: %s\n", m.where, m.what)
		default:
			fmt.Fprintf(out, "not reached: %s: %s\n", m.where, m.what)
		}
	}
	needed := r.needed()
	table := tabwriter.NewWriter(out, 0, 1, 2, ' ', 0)
	fmt.Fprintln(table, "test\tfile\tlines\tms\treaches\tkills\talone\tneeded")
	slices.SortFunc(r.tests, func(a, b *test) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	for _, t := range r.tests {
		kills, alone := 0, 0
		for _, m := range r.mutants {
			if slices.Contains(m.killers, t.name) {
				kills++
				if len(m.killers) == 1 {
					alone++
				}
			}
		}
		mark := ""
		if needed[t.name] {
			mark = "needed"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", t.name, t.file, t.lines, t.took.Milliseconds(), len(t.reaches), kills, alone, mark)
	}
	table.Flush()
	for _, l := range r.left {
		fmt.Fprintln(out, "left out:", l)
	}
}

// byOthers reports whether only tests of another package kill a mutant.
func (r *result) byOthers(m *mutant) bool {
	return len(m.killers) > 0 && !slices.ContainsFunc(r.tests, func(t *test) bool { return slices.Contains(m.killers, t.name) })
}

// needed returns a small set of tests that kills all killed mutants: the test that kills most of
// what is left, and of equal ones the shortest, until nothing is left.
func (r *result) needed() map[string]bool {
	needed := map[string]bool{}
	left := slices.DeleteFunc(slices.Clone(r.mutants), func(m *mutant) bool { return len(m.killers) == 0 || r.byOthers(m) })
	for len(left) > 0 {
		best := slices.MaxFunc(r.tests, func(a, b *test) int {
			return cmp.Or(cmp.Compare(a.killsOf(left), b.killsOf(left)), cmp.Compare(b.lines, a.lines))
		})
		needed[best.name] = true
		left = slices.DeleteFunc(left, func(m *mutant) bool { return slices.Contains(m.killers, best.name) })
	}
	return needed
}
