package sections

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// secretsSection returns the credentials that commands used, and refused requests for them. Refused
// requests come last, because commands decide how many there are.
func secretsSection(s *Source) document.Section {
	table := document.Table{Limit: document.Limit{Noun: "line", MaxUnits: 4_000}, Columns: columns("Credential", "By", "Host", "Requests")}
	add := func(name, sandbox, target string, result document.Text) {
		table.Rows = append(table.Rows, document.Row{document.Mono(name), document.Words(sandbox), document.Mono(target), result})
	}
	for _, secret := range s.View.Secrets {
		for _, u := range secret.UseCounts {
			add(secret.Name, u.Sandbox, u.Target, document.Words(u.DescribeCount()))
		}
	}
	for _, secret := range s.View.Secrets {
		for _, n := range secret.Refused {
			result := document.Text{{Text: "refused", Style: document.Result, Tone: document.Bad}, {Text: ": " + n.Reason}}
			if n.Request != "" {
				result = document.Join(" For example ", result, document.Mono(n.Request))
			}
			add(secret.Name, n.Sandbox, n.Target, result)
		}
	}
	return sectionWithIntro("credentials", "Credentials", "Commands see placeholders only. The proxy puts the values into requests.", table)
}

// serversSection returns the run's MCP servers, with the digest of each tool's schema.
func serversSection(s *Source) document.Section {
	table := document.Table{Limit: document.Limit{Noun: "tool", MaxRows: 200}, Columns: columns("Server", "Program or host", "Tool", "SHA-256 of its schema")}
	for _, server := range s.View.MCPServers {
		name := document.Mono(server.Name)
		parts := []document.Text{document.Mono(cmp.Or(server.Command, server.Host)), document.Words(strings.TrimSpace(server.Server + " " + server.Version))}
		if server.Revision != "" {
			parts = append(parts, document.Format("protocol `%s`", server.Revision))
		}
		if server.State != transcript.MCPReady {
			parts = append(parts, document.Text{{Text: server.State, Style: document.Result, Tone: document.Bad}, {Text: ": " + server.Reason}})
		}
		program := document.Join(", ", parts...)
		for _, tool := range server.Tools {
			table.Rows = append(table.Rows, document.Row{name, program, document.Mono(tool.ServerName), shortDigest(tool.SHA256)})
			name, program = nil, nil
		}
		if len(server.Tools) == 0 {
			table.Rows = append(table.Rows, document.Row{name, program, nil, nil})
		}
	}
	return section("mcp-servers", "MCP servers", table)
}

// shortDigest returns the beginning of a digest.
func shortDigest(sha string) document.Text { return document.Mono(clip.SHA(sha)) }

// jobTool is a tool that the job defines.
type jobTool struct {
	Name string          `json:"name"`
	Run  json.RawMessage `json:"run"` // a script, or a list of arguments; empty text for none
}

// jobToolsSection returns the tools that the job defines, and how often they were called.
func jobToolsSection(s *Source) document.Section {
	var job struct {
		Tools struct{ Dynamic []jobTool }
	}
	if json.Unmarshal(s.View.Started.Job, &job) != nil {
		return document.Section{}
	}
	called, failed := map[string]int{}, map[string]int{}
	for _, e := range s.View.Entries {
		if e.Call == nil {
			continue
		}
		called[e.Call.Tool]++
		if e.Call.Failed {
			failed[e.Call.Tool]++
		}
	}
	heads := columns("Tool", "Program", "Calls")
	if s.Timeline != nil { // a page shows the calls instead; there the view has no entries to count
		heads = heads[:2]
	}
	return section("job-tools", "Tools of the job", tableOf("tool", 4_000, heads, job.Tools.Dynamic, func(tool jobTool) document.Row {
		calls := fmt.Sprint(called[tool.Name])
		if n := failed[tool.Name]; n > 0 {
			calls += fmt.Sprintf(", %d failed", n)
		}
		return document.Row{document.Mono(tool.Name), tool.program(), document.Words(calls)}[:len(heads)]
	}))
}

// program returns a tool's command, or the length of a script of several lines. It returns nil without a
// command.
func (t jobTool) program() document.Text {
	var script string
	var argv []string
	switch {
	case json.Unmarshal(t.Run, &argv) == nil:
		return document.Mono(strings.Join(argv, " "))
	case json.Unmarshal(t.Run, &script) != nil:
		return nil
	}
	script = strings.TrimSpace(script)
	if lines := strings.Count(script, "\n") + 1; lines > 1 {
		return document.Words("a script of " + transcript.CountNoun(lines, "line"))
	}
	return document.Mono(script)
}

// skillsSection returns the skills that the model loaded.
func skillsSection(s *Source) document.Section {
	return section("skills", "Skills", tableOf("skill", 4_000, columns("Skill", "File", "SHA-256"), s.View.LoadedSkills, func(s transcript.Skill) document.Row {
		return document.Row{document.Mono(s.Name), document.Mono(s.Path), shortDigest(s.SHA256)}
	}))
}

// hooksSection returns the hooks of the run, with how often they answered.
func hooksSection(s *Source) document.Section {
	table := tableOf("hook", 4_000, columns("Hook", "On", "Asked#", "Refused#", "Failed#", "SHA-256"), s.View.Hooks, func(use transcript.HookUse) document.Row {
		name := document.Mono(use.Name)
		if use.Trusted {
			name = append(name, document.Span{Text: " (outside of the sandbox)"})
		}
		count := func(n int) document.Text { return document.Words(transcript.GroupThousands(n)) }
		return document.Row{name, document.Words(use.Event), count(use.Calls), count(use.Denials), count(use.Errors), shortDigest(use.SHA256)}
	})
	table.MaxRows = 64
	return section("hooks", "Hooks", table)
}

// refusalsSection returns the calls and hosts that the policy refused.
func refusalsSection(s *Source) document.Section {
	t := s.Timeline
	if t == nil || t.RefusedCalls+t.RefusedHosts == 0 {
		return document.Section{}
	}
	var counts []string
	if t.RefusedCalls > 0 {
		counts = append(counts, transcript.CountNoun(t.RefusedCalls, "call"))
	}
	if t.RefusedHosts > 0 {
		counts = append(counts, transcript.CountNoun(t.RefusedHosts, "host"))
	}
	words := "The policy refused " + strings.Join(counts, " and ")
	if len(t.Refusals) < t.RefusedCalls+t.RefusedHosts {
		words += fmt.Sprintf(", of which the first %d are shown", len(t.Refusals))
	}
	return section("refusals", "Refusals", paragraph(words+"."), listOf("refusal", t.Refusals, func(r Refusal) document.Text {
		return document.Join(" ", eventLinks([]int64{r.Event}), document.Words(r.Tool), document.Mono(r.Topic), document.Words("by "+r.Rule))
	}))
}
