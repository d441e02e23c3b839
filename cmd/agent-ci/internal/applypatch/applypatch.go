// Package applypatch makes agent-ci a program that only applies a patch, if it is started as apply_patch.
//
// Commands start that program for each patch. So the package's init function does all the work and exits: most
// other packages are then not initialised, which takes longer than an ordinary patch. Go initialises packages in
// the order of their import paths, as soon as their own imports are initialised (Go specification, "Program
// initialization"). So the package imports few others, and none whose path is late in that order.
package applypatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// Exit statuses, as of the other commands.
const (
	exitOK      = 0
	exitFailed  = 1
	exitInvalid = 2
)

func init() {
	if filepath.Base(os.Args[0]) == v4a.Program {
		proc.Conceal()
		os.Exit(run(os.Args[1:]))
	}
}

// run applies a patch to the current folder: the argument, or else standard input. It returns the exit status.
func run(args []string) int {
	if len(args) > 1 {
		fmt.Fprintf(os.Stderr, "%s: it takes one patch, as its argument or from standard input.\n", v4a.Program)
		return exitInvalid
	}
	text, err := patchText(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", v4a.Program, err)
		return exitInvalid
	}
	if len(text) > longPatch {
		defer runtime.KeepAlive(make([]byte, ballast))
	}
	plan, err := applyPatch(untilSignal(), text)
	if errors.As(err, new(*tree.LeftoverError)) {
		fmt.Fprintf(os.Stderr, "warning: %v\n", err)
		err = nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	if _, err = io.WriteString(os.Stdout, plan.Summary()+plan.Notes()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: the patch is applied, but the result could not be written: %v\n", v4a.Program, err)
		return exitFailed
	}
	return exitOK
}

// longPatch is the length, in bytes, from which less garbage collection saves time.
const longPatch = 16 << 10

// ballast is memory, in bytes, that is never touched. With it, garbage collection waits until 64 MB are allocated:
// nearly all that a patch allocates is in use until its end. Package runtime/debug would also do, but is initialised
// late.
const ballast = 32 << 20

// untilSignal returns a context that the first signal ends. The next one ends the process. Writing to a closed
// pipe returns an error.
func untilSignal() context.Context {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1) ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	signal.Ignore(syscall.SIGPIPE)
	return ctx
}

// maxPatch is the longest patch read from standard input, in bytes.
const maxPatch = 64 << 20

// patchText returns the patch from the argument or, without one or for -, from standard input.
func patchText(args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxPatch+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the patch from standard input: %w", err)
	case len(raw) == 0:
		return "", errors.New("there is no patch: give it as the argument or on standard input")
	case len(raw) > maxPatch:
		return "", fmt.Errorf("the patch is longer than %d bytes", maxPatch)
	}
	return string(raw), nil
}

// applyPatch applies the patch in text to the current folder. It returns the plan of its changes.
func applyPatch(ctx context.Context, text string) (*tree.Plan, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("invalid patch: it is not UTF-8")
	}
	patch, err := v4a.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid patch: %w", err)
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("open the folder to patch: %w", err)
	}
	defer root.Close()
	plan, err := tree.NewPlan(ctx, tree.OnRoot(root), patch)
	if err != nil {
		return plan, err
	}
	return plan, plan.Commit(ctx)
}
