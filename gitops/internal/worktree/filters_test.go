package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A filter that cannot run is found before any work is done.
func TestCheckFilters(t *testing.T) {
	for name, c := range map[string]struct {
		option, command, required string
		unlisted, unused          bool
		refused                   string // of the message; empty for none
	}{
		"not there":               {option: "clean", command: "agent-ci-no-such-filter clean", required: "true", refused: "its program agent-ci-no-such-filter is missing"},
		"not there, a process":    {option: "process", command: "agent-ci-no-such-filter", required: "true", refused: "is missing"},
		"not there, not required": {option: "clean", command: "agent-ci-no-such-filter clean", required: "false"},
		"there":                   {option: "clean", command: "tr a-z A-Z", required: "true"},
		"of the shell":            {option: "clean", command: "cd / && cat", required: "true"},
		"not listed":              {option: "clean", command: "cat", required: "false", unlisted: true, refused: "filter.large.clean"},
		"not listed, not used":    {option: "smudge", command: "cat", required: "false", unlisted: true, unused: true, refused: "filter.large.smudge"},
		"Git LFS, not listed":     {option: "clean", command: "git-lfs clean -- %f", required: "true", unlisted: true},
		"like Git LFS":            {option: "clean", command: "git-lfs clean -- %f | tee x", required: "true", unlisted: true, refused: "filter.large.clean"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.New(t)
			if !c.unused {
				r.Write(".gitattributes", "*.bin filter=large\n")
			}
			r.Seed()
			r.Git("config", "filter.large."+c.option, c.command)
			r.Git("config", "filter.large.required", c.required)
			one := open(t, r)
			if c.unlisted {
				one.work.Filters = (worktree.Filters{Open: unconfined})
			}
			err := one.work.CheckFilters(t.Context(), one.index())
			if errors.As(err, new(*worktree.FilterError)) != (c.refused != "") || err != nil && (c.refused == "" || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// server is a process filter: a shell script that knows packets of few bytes. It makes capital
// letters of one packet of content.
const server = `
pkt() { printf '%04x%s' $((${#1} + 4)) "$1"; }
read_list() { while :; do l=$(dd bs=1 count=4 2>/dev/null); [ "$l" = 0000 ] && break; [ -n "$l" ] || exit 0; text=$(dd bs=1 count=$((0x$l - 4)) 2>/dev/null); done; }
read_list; pkt git-filter-server; pkt version=2; printf 0000
read_list; pkt capability=clean; printf 0000
read_list
read_list
case $1 in
error) pkt status=error; printf 0000; exit 0;;
late) pkt status=success; printf 0000; pkt "$text"; printf 0000; pkt status=error; printf 0000; exit 0;;
silent) exit 0;;
esac
pkt status=success; printf 0000; pkt "$(printf %s "$text" | tr a-z A-Z)"; printf 0000; printf 0000
exit 3
`

func TestProcessFilters(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "server.sh")
	must.Do(t, os.WriteFile(script, []byte(server), 0o600))
	for name, c := range map[string]struct{ command, why string }{
		"answers":             {"sh " + script, ""},
		"says error":          {"sh " + script + " error", "its status is \"error\""},
		"says error late":     {"sh " + script + " late", "its status after the content is \"error\""},
		"says nothing":        {"sh " + script + " silent", "it ended before it had answered"},
		"greets wrongly":      {"printf 0009hello0000", "it greets with"},
		"no packets":          {"echo hello world", "which is no packet"},
		"ends":                {"exit 4", "exit status 4"},
		"a packet too long":   {"printf ffff", "which is no packet"},
		"no end of its words": {"yes 0005a | tr -d '\\n'", "more than 1000 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.New(t)
			r.Write(".gitattributes", "*.bin filter=p\n")
			r.Seed()
			r.Git("config", "filter.p.process", c.command)
			r.Git("config", "filter.p.required", "true")
			one := open(t, r)
			r.Write("a.bin", "abc")
			if found := one.suspect("a.bin"); !strings.Contains(found.Why, c.why) || (found.Why == "") != (c.why == "") {
				t.Fatalf("found %+v", found)
			}
			if c.why == "" {
				must.Same(t, "ABC", one.stored("a.bin"), "stored")
			}
		})
	}
}

// A person may copy the remedy into a shell, and a copied checkout chooses the name of the filter.
func TestRemedyIsOneCommand(t *testing.T) {
	for name, want := range map[string]string{
		"nb": "remove-section filter.nb", "lfs ": "remove-section 'filter.lfs '", "a'b;touch x": `remove-section 'filter.a'\''b;touch x'`,
	} {
		r := gittest.Seeded(t)
		r.Git("config", "filter."+name+".clean", "cat")
		one := open(t, r)
		one.work.Filters = (worktree.Filters{Open: unconfined})
		if err := one.work.CheckFilters(t.Context(), one.index()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
