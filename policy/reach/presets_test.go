package reach

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestPresets(t *testing.T) {
	for i, p := range presets {
		if p.purpose == "" || len(p.hosts) == 0 || len(p.hosts) > 10 {
			t.Errorf("%s says %q of %d hosts", p.name, p.purpose, len(p.hosts))
		}
		must.Same(t, i, slices.Index(PresetNames(), p.name), p.name, "is there twice")
		list, err := ParseList(PresetHosts(p.name))
		must.Do(t, err, p.name)
		for _, e := range list {
			if e.wildcard || e.addr.IsValid() || e.port != 0 || e.private || e.text != strings.ToLower(e.text) {
				t.Errorf("%s has %q, which is not a plain name", p.name, e)
			}
		}
	}
	must.None(t, PresetHosts("no such one"), "a preset that there is not")
}

// TestDocumentedPresets holds the table of docs/reference/policy.md to this one.
func TestDocumentedPresets(t *testing.T) {
	raw := must.Get(os.ReadFile("../../docs/reference/policy.md"))(t)
	_, rest, found := strings.Cut(string(raw), "| preset | hosts | for |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/reference/policy.md has no table of presets")
	}
	documented, _, _ := strings.Cut(rest, "\n\n")
	var table strings.Builder
	for _, p := range presets {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", p.name, strings.Join(p.hosts, "`, `"), p.purpose)
	}
	must.Same(t, table.String(), documented+"\n", "presets (-code +docs/reference/policy.md")
}
