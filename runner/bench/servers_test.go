package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// BenchmarkServersOfTools is what two servers over standard streams, in sandboxes of their own,
// cost a run.
func BenchmarkServersOfTools(b *testing.B) {
	server := filepath.Join(b.TempDir(), "toolserver")
	build := exec.Command("go", "build", "-o", server, "../../cmd/agent-ci/testdata/toolserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build toolserver: %v\n%s", err, out)
	}
	shown := filepath.Join(placeOfPrograms(b), "toolserver")
	raw, err := os.ReadFile(server)
	if err == nil {
		err = os.WriteFile(shown, raw, 0o755)
	}
	must.Do(b, err)
	repository := smallRepository(b)
	plain := []string{"--publish", "none", "--set", "task.expects=answer"}
	job := filepath.Join(b.TempDir(), "job.yml")
	text := "version: 1\ntask: {prompt: Do nothing.}\nmcp_servers:\n  one: {command: " + shown + ", tools: [echo]}\n  two: {command: " + shown + ", tools: [echo]}\n"
	must.Do(b, os.WriteFile(job, []byte(text), 0o644))
	var with, without []sighting
	for b.Loop() {
		with, without = with[:0], without[:0]
		for range runs {
			with = append(with, program{dir: repository, session: sayOnly, job: job, args: plain}.run(b))
			without = append(without, program{dir: repository, session: sayOnly, args: plain}.run(b))
		}
	}
	results.time("two servers of tools over standard streams: how much later the first request comes", median(with, sighting.began)-median(without, sighting.began), 40*time.Millisecond)
	results.time("  and the end of the run", median(with, sighting.total)-median(without, sighting.total), 0)
}

// placeOfPrograms is a folder that sandboxes show, as /tmp is not.
func placeOfPrograms(b *testing.B) string {
	b.Helper()
	for _, parent := range []string{"/srv", "/var/lib", "."} {
		parent, err := filepath.Abs(parent)
		if err != nil {
			continue
		}
		if dir, err := os.MkdirTemp(parent, "agent-ci-bench-"); err == nil {
			b.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	b.Skip("there is no folder for a program")
	return ""
}
