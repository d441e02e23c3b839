package v4a_test

import (
	"path"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

func TestAPatchIsGivenOtherPaths(t *testing.T) {
	for text, want := range map[string]string{
		"*** Begin Patch\n*** Add File: a\n+*** Add File: b\n*** Delete File: ./c\n*** End Patch": "*** Begin Patch\n*** Add File: in/a\n+*** Add File: b\n*** Delete File: in/c\n*** End Patch\n",
		"<<EOF\n*** Begin Patch \n  *** Add File: a  \r\n+x\r\n *** End Patch\nEOF":               "*** Begin Patch\n*** Add File: in/a\n+x\r\n*** End Patch\n",
		"*** Begin Patch\n*** Update File: a\n*** Move to: x/../b\n@@\n *** Update File: c\n-*** Move to: d\n+e\n*** Update File: f\n@@\n-1\n+2\n*** End Patch\n": "" +
			"*** Begin Patch\n*** Update File: in/a\n*** Move to: in/b\n@@\n *** Update File: c\n-*** Move to: d\n+e\n*** Update File: in/f\n@@\n-1\n+2\n*** End Patch\n",
	} {
		got, err := v4a.Rename(text, func(name string) string { return path.Join("in", name) })
		if err != nil || got != want {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
	if got, err := v4a.Rename("*** Begin Patch\nx\n*** End Patch", path.Clean); err == nil {
		t.Errorf("no patch becomes %q", got)
	}
}
