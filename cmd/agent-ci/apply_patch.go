package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// applyPatchName is the name under which agent's shells know the program: it
// takes the patch alone then, as the tool of other agents does.
const applyPatchName = "apply_patch"

func applyPatchCommand() command {
	return command{
		name:  "apply-patch",
		args:  "[PATCH] [--root DIR] [--check] [--json]",
		about: "apply a V4A patch to a folder: all of it, or nothing",
		details: `
The patch is the argument, or comes from standard input without one or with -.
The program does the same when it is started under the name apply_patch. The
exit status is 1 when the patch does not apply; nothing is changed then.`,
		example: `
agent-ci apply-patch --check <<'EOF'
*** Begin Patch
*** Update File: greet.sh
@@
-echo hello nobody
+echo hello world
*** End Patch
EOF`,
		run: applyPatch,
	}
}

type applyPatchArguments struct {
	root        string
	check, json bool
}

func applyPatch(ctx context.Context, p process, args []string) int {
	var a applyPatchArguments
	flags := newFlags(applyPatchCommand())
	flags.text(&a.root, "root", "DIR", "folder that the patch's paths are relative to (default: the current folder)")
	flags.on(&a.check, "check", "only say whether the patch applies, and show the change as a diff")
	flags.on(&a.json, "json", "print the result as JSON")
	rest, status, done := flags.parse(p, args)
	if done {
		return status
	}
	if len(rest) > 1 {
		return flags.wrong(p, "it takes one patch; quote it")
	}
	return a.apply(ctx, p, rest)
}

// applyPatchAlone is the program under the name apply_patch: no flags.
func applyPatchAlone(ctx context.Context, p process, args []string) int {
	if len(args) > 1 {
		fmt.Fprintln(p.stderr, "apply_patch: it takes one patch, as its argument or from standard input.")
		return exitInvalid
	}
	return applyPatchArguments{}.apply(ctx, p, args)
}

// longestPatch bounds what is read from standard input, in bytes.
const longestPatch = 64 << 20

func (a applyPatchArguments) apply(ctx context.Context, p process, args []string) int {
	text, err := patchText(p, args)
	if err != nil {
		fmt.Fprintf(p.stderr, "agent-ci apply-patch: %v\n", err)
		return exitInvalid
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	plan, err := a.carryOut(ctx, text)
	leftover := (*v4a.LeftoverError)(nil)
	if errors.As(err, &leftover) {
		fmt.Fprintf(p.stderr, "warning: %v\n", err)
		err = nil
	}
	if a.json {
		return showApplied(p, plan, a.check, err)
	}
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitFailed
	}
	if a.check {
		err = plan.Diff(p.stdout)
	} else {
		_, err = io.WriteString(p.stdout, plan.Summary())
	}
	if err != nil {
		return exitFailed
	}
	return exitOK
}

func patchText(p process, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	raw, err := io.ReadAll(io.LimitReader(p.stdin, longestPatch+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the patch from standard input: %w", err)
	case len(raw) == 0:
		return "", errors.New("there is no patch: give it as the argument or on standard input")
	case len(raw) > longestPatch:
		return "", fmt.Errorf("the patch is longer than %d bytes", longestPatch)
	case !utf8.Valid(raw):
		return "", errors.New("the patch is not UTF-8")
	}
	return string(raw), nil
}

func (a applyPatchArguments) carryOut(ctx context.Context, text string) (*v4a.Plan, error) {
	patch, err := v4a.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid patch: %w", err)
	}
	root, err := os.OpenRoot(filepath.Clean(a.root))
	if err != nil {
		return nil, fmt.Errorf("open the folder to patch: %w", err)
	}
	defer root.Close()
	plan, err := v4a.NewPlan(ctx, v4a.OnRoot(root), patch)
	if err != nil || a.check {
		return plan, err
	}
	return plan, plan.Commit(ctx)
}

// applied is what apply-patch --json prints.
type applied struct {
	Applied bool          `json:"applied"` // false with --check too
	Applies bool          `json:"applies"`
	Error   string        `json:"error,omitempty"`
	Files   []appliedFile `json:"files"`
}

type appliedFile struct {
	Path      string `json:"path"`
	Operation string `json:"operation"` // add, update, delete
	MovedFrom string `json:"moved_from,omitempty"`
	Added     int    `json:"added"` // lines
	Removed   int    `json:"removed"`
}

func showApplied(p process, plan *v4a.Plan, check bool, err error) int {
	result := applied{Applied: err == nil && !check, Applies: err == nil, Files: []appliedFile{}}
	status := exitOK
	if err != nil {
		result.Error, status = err.Error(), exitFailed
	} else {
		for _, c := range plan.Changes() {
			result.Files = append(result.Files, appliedFile{c.Path, string(c.Op), c.MovedFrom, c.Added, c.Removed})
		}
	}
	enc := json.NewEncoder(p.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(result); err != nil {
		return exitFailed
	}
	return status
}
