package spec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"gopkg.in/yaml.v3"
)

// ListedTarget is a target with its position in a file, for mistakes that are found later.
type ListedTarget struct {
	Target
	At config.Problem
}

// Listed returns the targets of the campaign's list. file is the campaign file, as messages show it.
func (c *Campaign) Listed(file string) (all []ListedTarget) {
	for i, t := range c.Targets.List {
		all = append(all, ListedTarget{t, config.Problem{File: file, Key: config.JoinPath("targets.list", i)}})
	}
	return all
}

// ParseTargets parses a file with one target a line. A line has words (OWNER/REPO, OWNER/REPO@SHA or OWNER/REPO#N, then
// an optional path), or a JSON object. Blank lines and lines with # are skipped. The error is config.Problems with
// line numbers.
func ParseTargets(file string, data []byte) ([]ListedTarget, error) {
	var all []ListedTarget
	var problems config.Problems
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		t, wrong := parseTarget(file, line)
		for _, p := range wrong {
			p.Line = number
			problems = append(problems, p)
		}
		if len(problems) > config.MaxProblems {
			break
		}
		all = append(all, ListedTarget{t, config.Problem{File: file, Line: number, Column: 1}})
	}
	if len(problems) > 0 {
		return nil, problems[:min(len(problems), config.MaxProblems)]
	}
	return all, nil
}

// parseTarget parses one line.
func parseTarget(file string, line []byte) (Target, config.Problems) {
	node, unfit := targetNode(line)
	if unfit != nil {
		unfit.File = file
		return Target{}, config.Problems{*unfit}
	}
	var t Target
	d := (&config.Format{Root: Format().Root.Find("targets.list[0]")}).Decoder(&t)
	d.AddNode(file, node)
	if _, _, _, err := t.Locate(); err != nil && len(d.Problems()) == 0 {
		d.ReportAtNode("", node, err.Error())
	}
	return t, d.Problems()
}

// targetNode returns a line as the YAML value of a target, or the problem of a line that is no text or YAML.
func targetNode(line []byte) (*yaml.Node, *config.Problem) {
	if line[0] == '{' {
		return Format().Parse(line)
	}
	if unfit := config.CheckText(line); unfit != nil {
		return nil, unfit
	}
	place, path, _ := strings.Cut(string(line), " ")
	name := "repository"
	if strings.Contains(place, "#") {
		name = "issue"
	}
	node := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1, Content: []*yaml.Node{config.TextNode(name), config.TextNode(place)}}
	if path = strings.TrimSpace(path); path != "" {
		node.Content = append(node.Content, config.TextNode("path"), config.TextNode(path))
	}
	for _, each := range node.Content {
		each.Line, each.Column = 1, 1
	}
	return node, nil
}

// Locate returns a target's repository, perhaps from the issue, its commit or "", and its issue or 0.
func (t Target) Locate() (repository, commit string, issue int, err error) {
	repository, commit, _ = strings.Cut(t.Repository, "@")
	if t.Issue != "" {
		named, err := form.ParseIssue(t.Issue)
		switch {
		case err != nil:
			return "", "", 0, err
		case named.Repository == "": // an issue of the target's repository
		case repository == "":
			repository = named.Repository
		case !strings.EqualFold(repository, named.Repository):
			return "", "", 0, fmt.Errorf("names an issue of %s, which is another repository than %s", named.Repository, repository)
		}
		issue = named.Number
	}
	if repository == "" {
		return "", "", 0, errors.New("names no repository")
	}
	return repository, commit, issue, nil
}

// Text returns the job's text at a path such as pull_request.branch, filled in, or "" if there is none.
func (t Template) Text(path string, values map[string]string) string {
	node := cloneNode(t.node)
	fillPlaceholders(node, func(_ string, _ *yaml.Node, space, name string) string { return values[space+"."+name] })
	if found := findNode(node, path); found != nil {
		return found.Value
	}
	return ""
}

// Unset returns the keys of paths that the job does not set, with their default values.
func (t Template) Unset(paths []string) map[string]any {
	unset := map[string]any{}
	for _, path := range paths {
		if !t.Sets(path) {
			unset[path] = job.Format().Root.Find(path).Default().Interface()
		}
	}
	return unset
}

// Sets reports whether the job sets the key at path.
func (t Template) Sets(path string) bool { return findNode(t.node, path) != nil }

// findNode returns the value at a path such as limits.tokens, or nil if it is missing or null.
func findNode(node *yaml.Node, path string) *yaml.Node {
	name, rest, deeper := strings.Cut(path, ".")
	for i := 0; i+1 < len(node.Content); i += 2 { // names and values alternate
		value := node.Content[i+1]
		if node.Content[i].Value != name || value.Tag == "!!null" {
			continue
		}
		if deeper {
			return findNode(value, rest)
		}
		return value
	}
	return nil
}

// Sample returns the job as a job file, with sample values for the target.
func (t Template) Sample() ([]byte, error) {
	return t.fill(func(space, name string) string {
		if space == "target" {
			return sampleFields[name]
		}
		return "x"
	}, nil)
}
