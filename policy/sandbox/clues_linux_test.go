package sandbox

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// A refusal is told by the layer that probably made it.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ name, needs, script, want string }{
		{"a file outside", "touch", "touch /etc/made", "sandbox ("},
		{"the network", "python3", `python3 -c 'import socket; socket.getaddrinfo("example.invalid", 80)'`, "the network"},
		{"a namespace", "unshare", "unshare --uts true", "seccomp"},
		{"a setuid program", "chmod", "touch own && chmod 4755 own", "no file is made setuid"},
		{"an archive with one", "tar", setidArchive + "tar -xpf made.tar", "tar --no-same-permissions"},
		{"an archive with one, by what the note says", "tar", setidArchive + "tar --no-same-permissions -xf made.tar && test -f own", ""},
		{"a copied mode", "cp", "cp -p /bin/su own || cp -p /usr/bin/passwd own", "cp --no-preserve=mode"},
		{"words in two pieces", "sh", `printf 'Read-only fi'; sleep 0.2; echo 'le system'; exit 1`, "mounts"},
		{"a failure of its own", "sh", "echo no such luck; exit 1", ""},
		{"words of one that went well", "sh", "echo Permission denied", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("needs %s", c.needs)
			}
			box, o := confined(t, "full", nil)
			clues := WatchRefusals(io.Discard)
			status := must.Get(box.Run(t.Context(), bash(o, c.script, clues)))(t)
			got := box.Explain(clues, status)
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q", got)
			}
			must.Same(t, "", new(Sandbox).Explain(clues, status), "without a sandbox")
		})
	}
}

// setidArchive packs a setuid file, which is none before.
const setidArchive = "touch own && tar --mode=4755 -cf made.tar own && rm own && "
