package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/learn"
	"github.com/agent-ci/agent-ci/runner/lessons"
	"github.com/agent-ci/agent-ci/runner/progress"
)

func learnCommand() command {
	return command{
		name:  "learn",
		args:  "RUN_DIR... [--propose] [--json]",
		about: "show what past runs have in common, without a model",
		details: `
Counts in transcripts: flaky checks and their times, hosts that were refused, missing
programs, failed setup commands. The same runs give the same answer. RUN_DIR may be
the id of a run in agent-ci runs.

--propose adds the findings to .agent-ci/lessons.yml of the checkout in this folder,
without duplicates. Review and commit it: later runs read it.`,
		example: `
agent-ci learn runs/*
agent-ci learn runs/* --propose`,
		takes: operands{1, math.MaxInt, "it takes at least one run directory"}, define: learnFrom,
	}
}

func learnFrom(flags *flagSet) deed {
	var propose, asJSON bool
	flags.on(&propose, "propose", "add what is found to .agent-ci/lessons.yml of the checkout")
	flags.on(&asJSON, "json", "print the result as JSON")
	return func(_ context.Context, p process, rest []string) int {
		var directories []string
		for _, name := range rest {
			directories = append(directories, p.runDirectory(name))
		}
		found, err := learn.From(directories)
		if err != nil {
			return failed(p, "learn", err)
		}
		said := learntJSON{Version: 1, Learnt: found}
		if propose {
			if said.Added, err = addLessons(found); err != nil {
				return failed(p, "learn", err)
			}
		}
		if asJSON {
			if writeJSON(p.stdout, said) != nil {
				return exitFailed
			}
			return exitOK
		}
		if _, err := fmt.Fprint(p.stdout, learntWords(said, propose)); err != nil {
			return exitFailed
		}
		return exitOK
	}
}

// learntJSON is what --json prints.
type learntJSON struct {
	Version int `json:"version"`
	*learn.Learnt
	Added []string `json:"added,omitempty"` // ids of lessons, with --propose
}

// addLessons adds findings to the file of the checkout here, and gives the ids that it did not have.
func addLessons(found *learn.Learnt) ([]string, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the current folder: %w", err)
	}
	root, inside := gitops.WorkTree(here)
	if !inside {
		return nil, errors.New("this folder is in no checkout; go to one for --propose")
	}
	added, err := lessons.AddTo(root, found.Lessons())
	ids := make([]string, len(added))
	for i, l := range added {
		ids[i] = l.ID
	}
	return ids, err
}

func learntWords(said learntJSON, propose bool) string {
	var s strings.Builder
	for _, f := range said.Findings {
		s.WriteString(progress.Printable(f.Sentence()) + "\n")
	}
	if len(said.Findings) == 0 {
		s.WriteString("The runs show nothing to learn.\n")
	}
	if propose {
		fmt.Fprintf(&s, "%s: %d added, %d were there already; review it and commit it.\n", lessons.Path, len(said.Added), len(said.Findings)-len(said.Added))
	}
	return s.String()
}
