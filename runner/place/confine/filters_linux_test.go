package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// Places for two filters are open at once while a checkout is put on its base.
func TestEarlyFiltersUseSeparateSandboxes(t *testing.T) {
	f := forking(t)
	open := EarlyFilters(f.Record, f.Environ)
	var places []gitops.FilterSandbox
	for _, name := range []string{"one", "two"} {
		place := must.Get(open(t.Context(), gitops.Filter{Name: name, Root: f.Root}))(t)
		defer func() {
			must.Is(t, nil, place.Close())
		}()
		places = append(places, place)
	}
	for i, place := range places {
		var said strings.Builder
		if err := place.Run(t.Context(), "cat; cat /tmp/left 2>/dev/null; echo left >/tmp/left", strings.NewReader("x\n"), &said); err != nil || said.String() != "x\n" {
			t.Errorf("place %d: %q, %v", i, said.String(), err)
		}
	}
}

// What a filter may read of the checkout, the agent may have replaced by a link.
func TestFiltersFollowNoLinks(t *testing.T) {
	f := forking(t)
	must.Do(t, errors.Join(os.Symlink("/etc/passwd", filepath.Join(f.Root, "key")), os.Symlink("dir", filepath.Join(f.Root, "keys"))))
	for read, refused := range map[string]bool{"key": true, "keys/file": true, "dir/file": false, "none": false, ".git": false} {
		place, err := f.OpenFilter(t.Context(), gitops.Filter{Name: "nb", Root: f.Root, Reads: []string{read}})
		if errors.As(err, new(*gitops.FilterError)) != refused || err != nil && !refused {
			t.Errorf("%s: %v", read, err)
		}
		if err == nil {
			must.Do(t, place.Close())
		}
	}
}
