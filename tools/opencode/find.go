package opencode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
)

// maxFound is the maximum number of files or lines that a search returns.
const maxFound = 100

// nothingFound is what OpenCode answers if a search finds nothing.
const nothingFound = "No files found"

var globSpec = tools.Spec{
	Name:        "glob",
	Description: "Finds files by their paths: first what changed in this run, the newest file first, then the others by path. What git ignores is left out.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","minLength":1,"description":"Glob such as *.go or src/**/*.{ts,tsx}."},` +
		`"path":{"type":"string","description":"Directory to search. Defaults to the working directory."}` +
		`},"required":["pattern"],"additionalProperties":false}`),
}

// globTool returns the tool glob. It finds files with the tool search, which is grep_files.
func globTool(search tools.Tool) tools.Tool {
	type arguments struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
	}
	return files.Tool(globSpec, func(ctx context.Context, a arguments) (tools.Result, error) {
		result, err := callTool(ctx, search, globSpec.Name, map[string]any{"pattern": "", "include": a.Pattern, "path": cmp.Or(a.Path, "."), "limit": maxFound})
		if foundNothing := result.Detail["files"] == 0; foundNothing && !result.Failed {
			result.Output = nothingFound
		}
		return result, err
	})
}

// callTool calls the tool inner for a tool with another name. If inner's output is a refusal that begins with
// inner's name, the returned output begins with name instead.
func callTool(ctx context.Context, inner tools.Tool, name string, arguments map[string]any) (tools.Result, error) {
	input, err := json.Marshal(arguments)
	if err != nil {
		return tools.Result{}, fmt.Errorf("write the arguments of %s: %w", inner.Spec.Name, err)
	}
	call, _ := tools.CallOf(ctx)
	call.Name, call.Input, call.Form = inner.Spec.Name, string(input), tools.Function
	result, err := inner.Run(ctx, call)
	if refusal, hasName := strings.CutPrefix(result.Output, inner.Spec.Name+": "); hasName && result.Failed {
		result.Output = name + ": " + refusal
	}
	return result, err
}

var grepSpec = tools.Spec{
	Name:        "grep",
	Description: "Finds lines that match a regular expression, file by file: first what changed in this run, the newest file first, then the others by path. Binary files and what git ignores are left out.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","minLength":1,"description":"Regular expression in RE2 syntax, matched line by line. (?i) in front of it ignores case."},` +
		`"path":{"type":"string","description":"Directory or file to search. Defaults to the working directory."},` +
		`"include":{"type":"string","description":"Glob that limits which files are searched, such as *.js or *.{ts,tsx}."}` +
		`},"required":["pattern"],"additionalProperties":false}`),
}

// grepTool returns the tool grep. If the search runs out of time, its result has failed, but contains the lines
// found until then.
func grepTool(o files.Options) tools.Tool {
	type arguments struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Include string `json:"include"`
	}
	return files.Tool(grepSpec, func(ctx context.Context, a arguments) (tools.Result, error) {
		found, err := o.Grep(ctx, a.Pattern, a.Include, cmp.Or(a.Path, "."), maxFound)
		refusal, isRefused := files.Refused(err)
		isPartial := isRefused && len(found.Files) > 0
		if err != nil && !isPartial {
			return tools.Result{}, err
		}
		result := tools.Result{Output: formatMatches(found), Failed: isPartial, Detail: map[string]any{"files": len(found.Files)}}
		if isPartial {
			result.Output = "grep: " + refusal + "\nFound until then:\n" + result.Output
		}
		return result, nil
	})
}

// formatMatches returns found lines in OpenCode's layout.
func formatMatches(found files.Matches) string {
	if len(found.Files) == 0 {
		return strings.TrimSuffix(nothingFound+"\n"+found.Unread, "\n")
	}
	var b strings.Builder
	lines := 0
	for _, file := range found.Files {
		fmt.Fprintf(&b, "\n%s:\n", clip.Visible(file.Path, 1000))
		for _, l := range file.Lines {
			fmt.Fprintf(&b, "  Line %d: %s\n", l.Number, l.Text)
		}
		lines += len(file.Lines)
		if len(file.Lines) == 0 {
			b.WriteString("  (in a line that is too long to be shown)\n")
		}
	}
	if found.More {
		b.WriteString("\n(There are more. Search for something narrower, or below a path.)\n")
	}
	if found.Unread != "" {
		b.WriteString("\n" + found.Unread + "\n")
	}
	return fmt.Sprintf("Found %d matches\n", lines) + b.String()
}

var listSpec = tools.Spec{
	Name: "list",
	Description: "Lists the entries of a directory and of those in it, to a depth of 3. A directory ends with /, a link with @. " +
		"What git ignores is left out, unless the directory itself is ignored.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Path of the directory, absolute or relative to the working directory, which it is by default."}` +
		`},"additionalProperties":false}`),
}

// listDepth is the number of levels of folders that a listing shows.
const listDepth = 3

// listTool returns the tool list. It calls the tool listing, which is list_dir, and changes its output to
// OpenCode's layout.
func listTool(listing tools.Tool) tools.Tool {
	type arguments struct {
		Path string `json:"path"`
	}
	return files.Tool(listSpec, func(ctx context.Context, a arguments) (tools.Result, error) {
		result, err := callTool(ctx, listing, listSpec.Name, map[string]any{"dir_path": cmp.Or(a.Path, "."), "depth": listDepth, "limit": maxFound})
		if list, isList := strings.CutPrefix(result.Output, "Absolute path: "); isList {
			top, entries, _ := strings.Cut(list, "\n")
			result.Output = top + "/\n" + indentedLines(entries)
		}
		return result, err
	})
}

func indentedLines(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString("  " + l)
	}
	return b.String()
}
