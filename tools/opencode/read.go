package opencode

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
)

const defaultLines = 2000

var readSpec = tools.Spec{
	Name: "read",
	Description: "Reads a text file, and returns its lines as \"<number>: <text>\", or shows a PNG, JPEG or GIF image. Long files come in pages: the answer says at which offset to go on. " +
		"A file has to be read before it can be changed by edit or write.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"filePath":{"type":"string","description":"Path of the file, absolute or relative to the working directory."},` +
		`"offset":{"type":"number","description":"Number of the first line to return, from 1."},` +
		`"limit":{"type":"number","description":"Most lines to return. Defaults to 2000."}` +
		`},"required":["filePath"],"additionalProperties":false}`),
}

type readArguments struct {
	Path   string   `json:"filePath"`
	Offset *float64 `json:"offset"`
	Limit  *float64 `json:"limit"`
}

// imageEndings lists the file name extensions of images.
var imageEndings = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// readTool returns the tool read. It shows images with the tool view; nil makes it read them as text.
func readTool(o files.Options, s *KnownFiles, view *tools.Tool) tools.Tool {
	return files.Tool(readSpec, func(ctx context.Context, a readArguments) (tools.Result, error) {
		if view != nil && slices.Contains(imageEndings, strings.ToLower(filepath.Ext(a.Path))) {
			return callTool(ctx, *view, readSpec.Name, map[string]any{"path": a.Path})
		}
		page, err := o.Page(ctx, a.Path, numberOr(a.Offset, 1), numberOr(a.Limit, defaultLines))
		if err != nil {
			return tools.Result{}, err
		}
		s.record(o.Dir, a.Path, page.Sum)
		return tools.Result{Output: formatPage(a.Path, page)}, nil
	})
}

// numberOr returns a number of a call as a whole number of at least 1, or fallback if given is nil.
func numberOr(given *float64, fallback int) int {
	if given == nil {
		return fallback
	}
	return int(min(max(*given, 1), 1<<30))
}

// formatPage returns a page in OpenCode's layout.
func formatPage(name string, page files.Page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<path>%s</path>\n<type>file</type>\n<content>\n", clip.Visible(name, 1000))
	for i, text := range page.Lines {
		fmt.Fprintf(&b, "%d: %s\n", page.First+i, text)
	}
	last := page.First + len(page.Lines) - 1
	if last < page.Total {
		fmt.Fprintf(&b, "\n(Showing lines %d-%d of %d. Use offset=%d to continue.)\n", page.First, last, page.Total, last+1)
	} else {
		fmt.Fprintf(&b, "\n(End of file - total %d lines)\n", page.Total)
	}
	b.WriteString("</content>")
	return b.String()
}
