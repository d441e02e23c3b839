package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of a server's initial information.
const (
	maxPages        = 500       // of a list
	maxTools        = 5000      // of a server
	maxToolName     = 256       // bytes
	maxSchema       = 512 << 10 // bytes of one allowed tool
	maxSchemas      = 16 << 20  // bytes of all allowed tools
	maxDescription  = 8 << 10   // bytes
	maxInstructions = 8 << 10   // bytes
	maxAnnotations  = 2 << 10   // bytes
	maxServerName   = 100       // bytes of a name or version in words
)

// oneLine returns a server's text in one line of up to 500 bytes.
func oneLine(text string) string {
	return clip.VisibleLine(text, 500)
}

// readDescription fills s.list with the server's description and tools. It returns an *Error if the job cannot
// use the server.
func (s *Session) readDescription(ctx context.Context) error {
	initialized := s.link.session.InitializeResult()
	s.list.Server, s.list.Revision = s.server.Name, initialized.ProtocolVersion
	s.list.Instructions = clip.Visible(initialized.Instructions, maxInstructions)
	if info := initialized.ServerInfo; info != nil {
		s.list.Name, s.list.Version = clip.Visible(info.Name, maxServerName), clip.Visible(info.Version, maxServerName)
	}
	if c := initialized.Capabilities; c != nil {
		s.list.Resources = c.Resources != nil
	}
	listed, err := s.listTools(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(listed, func(a, b Listed) int { return strings.Compare(a.Tool, b.Tool) }) // the server's order may change
	s.list.Tools = listed
	if err := s.requireNamedTools(); err != nil {
		return err
	}
	return s.requireOfferable(ctx)
}

// requireOfferable returns an *Error if an allowed tool cannot be offered to models, or if the start timeout ends
// during the check. Offer would find the same errors, but only for all servers together.
func (s *Session) requireOfferable(ctx context.Context) error {
	for _, tool := range s.list.Tools {
		if !tool.Allowed {
			continue
		}
		if ctx.Err() != nil {
			return s.protocolError("the schemas of its tools could not be read within %s; name those that are needed in tools, or set start_timeout higher", seconds(s.server.StartTimeout))
		}
		if _, err := toOffered(s.list, tool); err != nil {
			return err
		}
	}
	return nil
}

// listTools requests the server's tools. Tools that the job does not allow have no schema. The error is an *Error.
func (s *Session) listTools(ctx context.Context) ([]Listed, error) {
	listed, seen, schemaBytes := []Listed{}, map[string]bool{}, 0
	err := pages(func(cursor string) ([]*sdk.Tool, string, error) {
		page, err := s.link.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return page.Tools, page.NextCursor, nil
	}, func(page []*sdk.Tool) error {
		for _, tool := range page {
			l, err := s.convertTool(tool)
			if err != nil {
				return err
			}
			schemaBytes += len(l.Schema)
			switch {
			case seen[l.Tool]:
				return s.protocolError("it lists two tools with the name %q", oneLine(l.Tool))
			case len(listed) == maxTools:
				return s.protocolError("it lists more than %d tools", maxTools)
			case schemaBytes > maxSchemas:
				return s.protocolError("the schemas of its tools have more than %d MiB; name those that are needed in tools", maxSchemas>>20)
			}
			seen[l.Tool] = true
			listed = append(listed, l)
		}
		return nil
	})
	if err == nil {
		return listed, nil
	}
	if endless, isEndless := errors.AsType[*endlessError](err); isEndless {
		return nil, s.protocolError("its list of tools has no end: %s", endless.reason)
	}
	if explained, isExplained := errors.AsType[*Error](err); isExplained {
		return nil, explained
	}
	return nil, s.listFailure(ctx, err)
}

// listFailure returns the *Error for a failed request of the server's tools.
func (s *Session) listFailure(ctx context.Context, err error) error {
	if timeout := s.silenceAfterTimeout(ctx, s.link); timeout != nil {
		return s.explainFailure(ctx, timeout)
	}
	return s.explainFailure(ctx, fmt.Errorf("list its tools: %w", cmp.Or(s.link.lossReason(), err)))
}

// convertTool converts a tool of the protocol to a Listed. It returns an *Error for a tool that exceeds a bound.
func (s *Session) convertTool(tool *sdk.Tool) (Listed, error) {
	if tool.Name == "" || len(tool.Name) > maxToolName {
		return Listed{}, s.protocolError("it lists a tool with a name of %d bytes", len(tool.Name))
	}
	l := Listed{Tool: tool.Name, Allowed: s.server.allows(tool.Name), Description: clip.Visible(tool.Description, maxDescription)}
	if l.Description == "" {
		l.Description = clip.Visible(tool.Title, maxDescription)
	}
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return Listed{}, s.protocolError("the schema of its tool %q cannot be read: %v", oneLine(tool.Name), err)
	}
	l.SHA256 = fmt.Sprintf("%x", sha256.Sum256(schema)) // Marshal has sorted the keys
	if !l.Allowed {
		return l, nil
	}
	if len(schema) > maxSchema {
		return Listed{}, s.protocolError("the schema of its tool %q has more than %d KiB; take it out by deny", oneLine(tool.Name), maxSchema>>10)
	}
	l.Schema = schema
	annotations, err := json.Marshal(tool.Annotations)
	if tool.Annotations != nil && err == nil && len(annotations) <= maxAnnotations {
		l.Annotations = annotations
	}
	return l, nil
}

// allows reports whether the job allows calls of a tool.
func (s Server) allows(tool string) bool {
	if slices.Contains(s.Deny, tool) {
		return false
	}
	return slices.Contains(s.Tools, allTools) || slices.Contains(s.Tools, tool)
}

// requireNamedTools returns an *Error if the server lacks a tool that the job names in tools or deny. Otherwise a
// misspelt name in deny would allow the tool.
func (s *Session) requireNamedTools() error {
	var missing, names []string
	for _, tool := range s.list.Tools {
		names = append(names, oneLine(tool.Tool))
	}
	for _, tool := range slices.Concat(s.server.Tools, s.server.Deny) {
		exists := slices.ContainsFunc(s.list.Tools, func(l Listed) bool { return l.Tool == tool })
		if tool != allTools && !exists {
			missing = append(missing, tool)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	offered := "it has none"
	if len(names) > 0 {
		offered = "it has " + clip.Some(names, maxListed)
	}
	return &Error{
		Reason: ReasonToolMissing,
		Words:  fmt.Sprintf("the MCP server %s has no tool %s; %s; correct tools or deny of mcp_servers.%s", s.server.Name, strings.Join(missing, ", "), offered, s.server.Name),
	}
}
