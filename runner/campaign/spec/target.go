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

// Listed is a target with where it stands, for mistakes that are found later.
type Listed struct {
	Target
	At config.Problem
}

// Listed are the targets of the campaign's list.
func (c *Campaign) Listed() []Listed {
	var all []Listed
	for i, t := range c.Targets.List {
		all = append(all, Listed{t, config.Problem{Key: config.At("targets.list", i)}})
	}
	return all
}

// ParseTargets reads a target from each line: words (OWNER/REPO, OWNER/REPO@SHA, OWNER/REPO#N, and
// behind a blank a path) or an object of JSON. It skips blank lines and # comments. The error is
// Problems with line numbers.
func ParseTargets(file string, data []byte) ([]Listed, error) {
	var all []Listed
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
		all = append(all, Listed{t, config.Problem{File: file, Line: number, Column: 1}})
	}
	if len(problems) > 0 {
		return nil, problems[:min(len(problems), config.MaxProblems)]
	}
	return all, nil
}

func parseTarget(file string, line []byte) (Target, config.Problems) {
	node, unfit := targetNode(line)
	if unfit != nil {
		unfit.File = file
		return Target{}, config.Problems{*unfit}
	}
	var t Target
	d := (&config.Format{Root: Format().Root.At("targets.list[0]")}).Decoder(&t)
	d.AddNode(file, node)
	if _, _, _, err := t.Locate(); err != nil && len(d.Problems()) == 0 {
		d.Complain("", node, err.Error())
	}
	return t, d.Problems()
}

// targetNode is a line as the value of a target.
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

// Locate are the repository (OWNER/REPO), the commit (empty for none) and the issue (0 for none) of a
// target.
func (t Target) Locate() (repository, commit string, issue int, err error) {
	repository, commit, _ = strings.Cut(t.Repository, "@")
	if t.Issue != "" {
		of, err := form.ParseIssue(t.Issue)
		switch {
		case err != nil:
			return "", "", 0, err
		case of.Repository == "":
		case repository == "":
			repository = of.Repository
		case !strings.EqualFold(repository, of.Repository):
			return "", "", 0, fmt.Errorf("names an issue of %s, which is another repository than %s", of.Repository, repository)
		}
		issue = of.Number
	}
	if repository == "" {
		return "", "", 0, errors.New("names no repository")
	}
	return repository, commit, issue, nil
}

// Text returns the job's text at a path such as pull_request.branch, with the target's values
// filled in; empty where there is none.
func (t Template) Text(path string, values map[string]string) string {
	node := cloneNode(t.node)
	fillPlaceholders(node, "", func(_ string, _ *yaml.Node, space, name string) string { return values[space+"."+name] })
	if found := lookup(node, path); found != nil {
		return found.Value
	}
	return ""
}

// Unset are the keys, of those at paths of groups, that the job does not set, with the values that
// they begin with.
func (t Template) Unset(paths []string) map[string]any {
	unset := map[string]any{}
	for _, path := range paths {
		if k := job.Format().Root.At(path); !t.Sets(path) {
			unset[path] = k.Default().Interface()
		}
	}
	return unset
}

// Sets says whether the job sets the key at a path of groups.
func (t Template) Sets(path string) bool { return lookup(t.node, path) != nil }

// lookup returns the value at a path of groups, or nil if it is missing or null.
func lookup(node *yaml.Node, path string) *yaml.Node {
	name, rest, deeper := strings.Cut(path, ".")
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch value := node.Content[i+1]; {
		case node.Content[i].Value != name || value.Tag == "!!null":
		case deeper:
			return lookup(value, rest)
		default:
			return value
		}
	}
	return nil
}

// Sample returns a job file with sample values for the target's.
func (t Template) Sample() ([]byte, error) {
	return t.fill(func(space, name string) string {
		if space == "target" {
			return samples[name]
		}
		return "x"
	}, nil)
}
