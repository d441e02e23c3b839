package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/tools"
)

// operation is the request in an apply_patch_call of the Responses API: one file, and a diff without an envelope.
type operation struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Diff string `json:"diff"`
}

var operations = map[string]struct {
	op     v4a.Op
	header string
}{
	"create_file": {v4a.Add, "*** Add File: "},
	"update_file": {v4a.Update, "*** Update File: "},
	"delete_file": {v4a.Delete, "*** Delete File: "},
}

// applyOperation applies an operation, given as JSON.
func (p *Patcher) applyOperation(ctx context.Context, input string) (tools.Result, error) {
	var o operation
	if err := json.Unmarshal([]byte(input), &o); err != nil {
		return tools.Refuse(fmt.Sprintf("the operation cannot be read: %v", err)), nil
	}
	kind, isKnown := operations[o.Type]
	if !isKnown {
		return tools.Refuse(fmt.Sprintf("%q is no operation; it is create_file, update_file or delete_file", o.Type)), nil
	}
	if strings.ContainsAny(o.Path, "\r\n") {
		return tools.Refuse(fmt.Sprintf("patch rejected: %q: a path is one line", o.Path)), nil
	}
	patch, err := v4a.ParseDiff(kind.op, o.Path, o.Diff)
	if err != nil {
		return tools.Refuse(verificationFailed + err.Error()), nil
	}
	return p.apply(ctx, patch, o.asPatch())
}

// asPatch returns the operation in the text format of patches.
func (o operation) asPatch() string {
	lines := []string{"*** Begin Patch", operations[o.Type].header + o.Path}
	if diff := strings.TrimSuffix(o.Diff, "\n"); diff != "" && o.Type != "delete_file" {
		lines = append(lines, diff)
	}
	return strings.Join(append(lines, "*** End Patch"), "\n") + "\n"
}
