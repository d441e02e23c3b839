package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
)

// applyPatchName is the name under which agents' shells call the program. With that name it only applies
// a patch, like the tool of the same name that other agents have.
const applyPatchName = "apply_patch"

// applyPatchAlone applies a patch to the current folder. The patch is the argument, or else standard input.
func applyPatchAlone(ctx context.Context, p cli.Process, args []string) int {
	if len(args) > 1 {
		fmt.Fprintf(p.Stderr, "%s: it takes one patch, as its argument or from standard input.\n", applyPatchName)
		return cli.ExitInvalid
	}
	text, err := readPatch(p, args)
	if err != nil {
		fmt.Fprintf(p.Stderr, "%s: %v\n", applyPatchName, err)
		return cli.ExitInvalid
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	plan, err := applyPatch(ctx, text)
	if errors.As(err, new(*tree.LeftoverError)) {
		fmt.Fprintf(p.Stderr, "warning: %v\n", err)
		err = nil
	}
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return cli.ExitFailed
	}
	_, err = io.WriteString(p.Stdout, plan.Summary())
	if err = errors.Join(err, plan.WriteNotes(p.Stdout)); err != nil {
		fmt.Fprintf(p.Stderr, "%s: the patch is applied, but the result could not be written: %v\n", applyPatchName, err)
		return cli.ExitFailed
	}
	return cli.ExitOK
}

// maxPatch is the longest patch read from standard input, in bytes.
const maxPatch = 64 << 20

// readPatch returns the patch from the argument or, without one or for -, from standard input.
func readPatch(p cli.Process, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	raw, err := io.ReadAll(io.LimitReader(p.Stdin, maxPatch+1))
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
