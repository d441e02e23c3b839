package body

import (
	"cmp"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// servers tells which servers of tools there were, and of each tool the digest of its schema.
func servers(all []transcript.MCPServer) section {
	s := section{
		head: "\n## MCP servers\n\n| Server | Program or host | Tool | SHA-256 of its schema |\n|---|---|---|---|\n",
		most: 200, share: 6_000, more: "tool",
	}
	for _, server := range all {
		what := cell(cmp.Or(server.Command, server.Host))
		if server.Server != "" {
			what += ", " + text(server.Server+" "+server.Version)
		}
		if server.Revision != "" {
			what += ", protocol " + cell(server.Revision)
		}
		if server.State != transcript.MCPReady {
			what += ", " + bad + text(server.State+": "+server.Why)
		}
		if len(server.Tools) == 0 {
			s.rows = append(s.rows, fmt.Sprintf("| %s | %s | | |\n", cell(server.Name), what))
		}
		for i, tool := range server.Tools {
			name := ""
			if i == 0 {
				name = cell(server.Name)
			} else {
				what = ""
			}
			s.rows = append(s.rows, fmt.Sprintf("| %s | %s | %s | %s |\n", name, what, cell(tool.Tool), cell(transcript.ShortSHA(tool.SHA256))))
		}
	}
	return s
}
