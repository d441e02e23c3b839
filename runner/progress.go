package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// harmlessJSON writes the bracket of an old workflow command as its escape, which
// means the same in a string of JSON.
func (r *run) harmlessJSON(line []byte) []byte {
	if r.options.Step == nil {
		return line
	}
	return bytes.ReplaceAll(line, []byte("##["), []byte(`##\u005b`))
}

// showEvent shows an event to who watches: as a line of JSON, or in words.
func (r *run) showEvent(e transcript.Event) {
	if w := r.options.Events; w != nil {
		line, err := e.Line()
		if err == nil {
			_, err = w.Write(append(r.harmlessJSON(line), '\n'))
		}
		if err != nil {
			r.options.Events = nil // nobody reads any more
		}
	}
	r.fold(e.Type)
	if p := r.progress.Load(); p != nil {
		p.take(e)
	}
	if w := r.options.Progress; w != nil && !r.options.Quiet {
		if line := progressLine(e); line != "" {
			if _, err := io.WriteString(w, "agent-ci: "+line+"\n"); err != nil {
				r.options.Progress = nil
			}
		}
	}
}

// progressLines put an event into words. What is not here is not shown.
var progressLines = map[transcript.Type]func(json.RawMessage) string{
	transcript.TypeRunStarted: line(func(d transcript.RunStarted) string {
		words := "run " + d.RunID
		if d.Key != "" {
			words += " of " + d.Key
		}
		if d.Scripted != "" {
			words += fmt.Sprintf("; the model's answers are scripted (%s), no model is asked", d.Scripted)
		}
		return words
	}),
	transcript.TypeWorkspace: line(func(d transcript.Workspace) string {
		return strings.TrimSpace("base is " + d.Base + " " + gitops.Short(d.BaseSHA))
	}),
	transcript.TypePolicy: line(func(d transcript.Policy) string {
		if len(d.Layers) == 0 {
			return "WARNING: commands run unconfined, with all rights of this user"
		}
		return fmt.Sprintf("commands are confined: %s (%s)", d.Level, strings.Join(d.Layers, ", "))
	}),
	transcript.TypeSetup: line(func(d transcript.Setup) string {
		return fmt.Sprintf("setup %s: exit %d after %.1f s", d.Name, d.ExitCode, d.Seconds)
	}),
	transcript.TypeNetwork: line(func(d transcript.Network) string {
		if d.Allowed {
			return ""
		}
		return fmt.Sprintf("  refused to reach %s: %s", d.Target, d.Reason)
	}),
	transcript.TypeModelRetry: line(func(d transcript.ModelRetry) string {
		return fmt.Sprintf("attempt %d failed (%s), again in %.1f s", d.Attempt, d.Error, d.Wait)
	}),
	transcript.TypeModelResponse: line(func(d transcript.ModelResponse) string {
		return fmt.Sprintf("turn %d: %.1f s, %d tokens in (%d cached), %d out", d.Turn, d.Seconds, d.Usage.Input, d.Usage.Cached, d.Usage.Output)
	}),
	transcript.TypeToolStarted: line(func(d transcript.ToolStarted) string {
		return strings.TrimRight("  "+d.Tool+" "+transcript.Topic(d.Input), " ")
	}),
	transcript.TypeToolFinished: line(func(d transcript.ToolFinished) string {
		if !d.Failed {
			return ""
		}
		return fmt.Sprintf("  %s failed after %.1f s", d.Tool, d.Seconds)
	}),
	transcript.TypePlan: line(func(d transcript.Plan) string {
		done := 0
		for _, step := range d.Steps {
			if step.Status == "completed" {
				done++
			}
		}
		return fmt.Sprintf("  plan: %d of %d steps done", done, len(d.Steps))
	}),
	transcript.TypeVerify: line(func(d transcript.Verify) string {
		var rows []string
		for _, row := range d.Rows {
			if d.Attempt == 0 {
				rows = append(rows, fmt.Sprintf("%s is %s", row.Name, row.Before))
			} else {
				rows = append(rows, fmt.Sprintf("%s %s → %s", row.Name, row.Before, row.After))
			}
		}
		if d.Attempt == 0 {
			return "before the change: " + strings.Join(rows, ", ")
		}
		return "verified: " + strings.Join(rows, ", ")
	}),
	transcript.TypePublish: line(func(d transcript.Publish) string {
		switch d.Step {
		case "commit":
			return fmt.Sprintf("committed %s on %s", gitops.Short(d.HeadSHA), d.Branch)
		case "push":
			return fmt.Sprintf("pushed %s to %s", d.Branch, d.Remote)
		}
		return fmt.Sprintf("pull request %s: %s", d.Operation, d.URL)
	}),
	transcript.TypeWarning: line(func(d transcript.Warning) string { return "warning: " + d.Message }),
}

// line reads the data of one type of event.
func line[T any](words func(T) string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var data T
		if json.Unmarshal(raw, &data) != nil {
			return ""
		}
		return words(data)
	}
}

func progressLine(e transcript.Event) string {
	words, shown := progressLines[e.Type]
	if !shown {
		return ""
	}
	return Printable(words(e.Data))
}

// Printable is text as one line for a terminal or a log, which it cannot steer and
// where all of it can be seen: the words hold text of models, repositories and
// commands. Ends of lines and tabs become blanks, other control characters are
// shown as pictures, characters of format by their number.
func Printable(text string) string {
	line := strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return ' '
		}
		return c
	}, text)
	return markdown.Show(strings.ReplaceAll(line, "\x1b", "\u241b"))
}
