package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// BenchmarkGitStatus compares git status as the agent calls it with the same in the
// checkout, also where the run directory is on another file system: git reads each file
// again whose stat data is not what its index has.
func BenchmarkGitStatus(b *testing.B) {
	const files = 50_000
	repository := largeRepository(b, files)
	places := []struct{ where, out string }{{"the overlay", b.TempDir()}}
	if dir := otherFileSystem(b, repository); dir != "" {
		places = append(places, struct{ where, out string }{"an overlay that keeps its changes in " + memoryFolder, dir})
	}
	for _, place := range places {
		b.Run(place.where, func(b *testing.B) {
			var inside, outside []time.Duration
			for b.Loop() {
				inside = statusInside(b, repository, filepath.Join(place.out, "run"))
				outside = statusOutside(b, repository)
			}
			byGit := medianOf(outside)
			results.against(fmt.Sprintf("git status of %d files in %s", files, place.where), medianOf(inside), "in the checkout", byGit, 1.5)
		})
	}
}

const memoryFolder = "/dev/shm"

// otherFileSystem is a folder on another file system than the repository; empty where
// none is known.
func otherFileSystem(b *testing.B, repository string) string {
	b.Helper()
	var here, there syscall.Stat_t
	if syscall.Stat(repository, &here) != nil || syscall.Stat(memoryFolder, &there) != nil || here.Dev == there.Dev {
		return ""
	}
	dir, err := os.MkdirTemp(memoryFolder, "bench-")
	if err != nil {
		return ""
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// statusScript says how long git status took each time, in microseconds, after a first
// one that brings the folders into memory.
var statusScript = fmt.Sprintf(`git status >/dev/null
for i in {1..%d}; do
	from=${EPOCHREALTIME/./}
	git status >/dev/null
	echo status $((${EPOCHREALTIME/./} - from))
done
`, runs)

func statusInside(b *testing.B, repository, out string) []time.Duration {
	b.Helper()
	arguments := must.Get(json.Marshal(map[string]any{"cmd": statusScript, "yield_time_ms": 30_000}))(b)
	session := fmt.Sprintf("version: 1\nturns:\n  - output: [{call: exec_command, arguments: %s}]\n  - output: [{say: Done.}]\n", arguments)
	program{dir: repository, session: session, out: out, args: []string{"--publish", "none", "--set", "task.expects=answer"}}.run(b)
	return statusTimes(b, outputOfCall(b, filepath.Join(out, "transcript.jsonl")))
}

func statusOutside(b *testing.B, repository string) []time.Duration {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "bash", "-c", statusScript)
	cmd.Dir = repository
	cmd.Env = append(gitEnvironment(), "HOME="+b.TempDir(), "PATH="+os.Getenv("PATH"))
	said := must.Get(cmd.Output())(b)
	return statusTimes(b, string(said))
}

// statusTimes are those that the script said.
func statusTimes(b *testing.B, said string) (times []time.Duration) {
	b.Helper()
	for line := range strings.Lines(said) {
		var microseconds int64
		if _, err := fmt.Sscanf(line, "status %d", &microseconds); err == nil {
			times = append(times, time.Duration(microseconds)*time.Microsecond)
		}
	}
	if len(times) != runs {
		b.Fatalf("git status was not timed %d times:\n%s", runs, said)
	}
	return times
}

// outputOfCall is what the model was given of the last call.
func outputOfCall(b *testing.B, path string) (output string) {
	b.Helper()
	file := must.Get(os.Open(path))(b)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, eventlog.MaxLine)
	for lines.Scan() {
		var event struct {
			Type transcript.Type         `json:"type"`
			Data transcript.ToolFinished `json:"data"`
		}
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Type == transcript.TypeToolFinished {
			output = event.Data.Output
		}
	}
	must.Do(b, lines.Err())
	return output
}

// BenchmarkRunsAtOnce has several runs work in one checkout at the same time, each of
// which publishes a small change. What they take of the disk is their records, and while
// a check runs the index of its git folder, not copies of the checkout.
func BenchmarkRunsAtOnce(b *testing.B) {
	const files, atOnce, record = 20_000, 8, 1_000_000
	repository := largeRepository(b, files)
	var most int64
	for b.Loop() {
		most = diskOfRunsAtOnce(b, repository, atOnce)
	}
	for i := range atOnce {
		if changed := strings.TrimSpace(git(b, repository, "diff", "--name-only", "main", fmt.Sprintf("agent-ci/bench-%d", i))); changed != changedFile {
			b.Fatalf("run %d committed %q, want %s", i, changed, changedFile)
		}
	}
	index := diskUsed(filepath.Join(repository, ".git", "index"))
	results.bytes(fmt.Sprintf("%d runs at once in a checkout of %s (index: %s), with a check: disk beside it at most",
		atOnce, bytesOf(diskUsed(repository)), bytesOf(index)), most, atOnce*(record+index))
}

// diskOfRunsAtOnce is the most that run directories and git's folder took besides what
// was there, while so many runs worked.
func diskOfRunsAtOnce(b *testing.B, repository string, atOnce int) int64 {
	b.Helper()
	records, gitFolder := b.TempDir(), filepath.Join(repository, ".git")
	before := diskUsed(gitFolder)
	stop, most := make(chan struct{}), make(chan int64)
	go func() { most <- mostDiskUsed(stop, records, gitFolder) }()
	var all []*underway
	for i := range atOnce {
		all = append(all, program{dir: repository, session: patchSession(i), out: filepath.Join(records, fmt.Sprint(i)), args: []string{
			"--publish", "local", "--set", fmt.Sprintf("name=bench-%d", i), "--set", oneCheck,
		}}.start(b))
	}
	for _, run := range all {
		run.end(b)
	}
	close(stop)
	return <-most - before
}

// mostDiskUsed is the most that folders take at one time, until stop is closed.
func mostDiskUsed(stop <-chan struct{}, dirs ...string) (most int64) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		var now int64
		for _, dir := range dirs {
			now += diskUsed(dir)
		}
		most = max(most, now)
		select {
		case <-stop:
			return most
		case <-look.C:
		}
	}
}

// diskUsed is what the files below a folder take of the disk, in bytes. Files that
// come and go meanwhile may be missed.
func diskUsed(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			const block = 512 // of st_blocks, inode(7)
			bytes += info.Sys().(*syscall.Stat_t).Blocks * block
		}
		return nil
	})
	return bytes
}
