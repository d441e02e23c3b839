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
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
)

// applyPatchName is the name under which agent's shells know the program: it
// takes the patch alone then, as the tool of other agents does.
const applyPatchName = "apply_patch"

func applyPatchCommand() command {
	return command{
		name:  "apply-patch",
		args:  "[PATCH] [--root DIR] [--check] [--json]",
		about: "apply a V4A patch to a folder: all of it or nothing",
		details: `
The patch is the argument, or comes from standard input without one or with -.
The program does the same when it is started under the name apply_patch. The
exit status is 1 when the patch does not apply; standard error says why, and
nothing is changed then. It is 1 too when the patch is applied but the result
cannot be written to standard output; standard error says so.`,
		example: `
agent-ci apply-patch --check <<'EOF'
*** Begin Patch
*** Update File: greet.sh
@@
-echo hello nobody
+echo hello world
*** End Patch
EOF`,
		takes: operands{0, 1, "it takes one patch; quote it"}, define: applyPatch,
	}
}

type applyPatchArguments struct {
	program     string // the name that it goes by in messages
	root        string
	check, json bool
}

func applyPatch(flags *flagSet) deed {
	a := &applyPatchArguments{program: "agent-ci apply-patch"}
	flags.text(&a.root, "root", "DIR", "folder that the patch's paths are relative to (default: the current folder)")
	flags.on(&a.check, "check", "only say whether the patch applies, and show the change as a diff")
	flags.on(&a.json, "json", "print the result as JSON")
	return a.apply
}

// applyPatchAlone is the program under the name apply_patch: no flags.
func applyPatchAlone(ctx context.Context, p process, args []string) int {
	if len(args) > 1 {
		fmt.Fprintf(p.stderr, "%s: it takes one patch, as its argument or from standard input.\n", applyPatchName)
		return exitInvalid
	}
	return (&applyPatchArguments{program: applyPatchName}).apply(ctx, p, args)
}

// longestPatch bounds what is read from standard input, in bytes.
const longestPatch = 64 << 20

func (a *applyPatchArguments) apply(ctx context.Context, p process, args []string) int {
	text, err := patchText(p, args)
	if err != nil {
		return a.fail(p, exitInvalid, fmt.Errorf("%s: %w", a.program, err))
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	plan, err := a.carryOut(ctx, text)
	if errors.As(err, new(*tree.LeftoverError)) {
		fmt.Fprintf(p.stderr, "warning: %v\n", err)
		err = nil
	}
	if err != nil {
		return a.fail(p, exitFailed, err)
	}
	return a.show(p, plan)
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
	}
	return string(raw), nil
}

func (a *applyPatchArguments) carryOut(ctx context.Context, text string) (*tree.Plan, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("invalid patch: it is not UTF-8")
	}
	patch, err := v4a.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid patch: %w", err)
	}
	root, err := os.OpenRoot(filepath.Clean(a.root))
	if err != nil {
		return nil, fmt.Errorf("open the folder to patch: %w", err)
	}
	defer root.Close()
	plan, err := tree.NewPlan(ctx, tree.OnRoot(root), patch)
	if err != nil || a.check {
		return plan, err
	}
	return plan, plan.Commit(ctx)
}

// applied is what apply-patch --json prints.
type applied struct {
	Applied bool   `json:"applied"` // false with --check too
	Applies bool   `json:"applies"`
	Error   string `json:"error,omitempty"`
	// Notes say what to look at although the patch fits, such as a place that is not the only one.
	Notes []string      `json:"notes,omitempty"`
	Files []appliedFile `json:"files"`
}

type appliedFile struct {
	Path      string `json:"path"`
	Operation string `json:"operation"` // add, update, delete
	MovedFrom string `json:"moved_from,omitempty"`
	Added     int    `json:"added"` // lines
	Removed   int    `json:"removed"`
}

// fail says why the patch is not applied, and with --json also where a program
// looks for it.
func (a *applyPatchArguments) fail(p process, status int, err error) int {
	fmt.Fprintln(p.stderr, err)
	if a.json {
		result := applied{Error: err.Error(), Files: []appliedFile{}}
		if err := writeJSON(p.stdout, result); err != nil {
			fmt.Fprintf(p.stderr, "%s: the result could not be written: %v\n", a.program, err)
		}
	}
	return status
}

// show prints what was, or with --check would be, changed.
func (a *applyPatchArguments) show(p process, plan *tree.Plan) int {
	var err error
	switch {
	case a.json:
		err = writeJSON(p.stdout, a.result(plan))
	case a.check:
		err = errors.Join(plan.WriteNotes(p.stderr), plan.Diff(p.stdout))
	default:
		_, err = io.WriteString(p.stdout, plan.Summary())
		err = errors.Join(err, plan.WriteNotes(p.stdout))
	}
	if err == nil {
		return exitOK
	}
	done := "the patch is applied"
	if a.check {
		done = "the patch applies"
	}
	fmt.Fprintf(p.stderr, "%s: %s, but the result could not be written: %v\n", a.program, done, err)
	return exitFailed
}

func (a *applyPatchArguments) result(plan *tree.Plan) applied {
	result := applied{Applied: !a.check, Applies: true, Notes: plan.Notes(), Files: []appliedFile{}}
	for _, c := range plan.Changes() {
		result.Files = append(result.Files, appliedFile{c.Path, string(c.Op), c.MovedFrom, c.Added, c.Removed})
	}
	return result
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
