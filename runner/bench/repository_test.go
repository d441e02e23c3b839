package bench

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// changedFile is the file that is changed in the large repository.
const (
	changedFile  = "d000/f000.txt"
	originalText = "file 0"
)

func gitEnvironment() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@example.invalid",
		"GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@example.invalid",
	}
}

func gitCommand(b *testing.B, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.Context(), "git", append([]string{"-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(gitEnvironment(), "HOME="+b.TempDir(), "PATH="+os.Getenv("PATH"))
	return cmd
}

func git(b *testing.B, dir string, args ...string) string {
	b.Helper()
	cmd := gitCommand(b, dir, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	must.Do(b, err, args, said.String())
	return string(out)
}

// huge is how many files the largest repository has.
var huge = flag.Int("huge", 500_000, "how many files the largest repository has")

func smallRepository(b *testing.B) string { return largeRepository(b, 1) }

// largeRepository has files files on the branch main, a hundred in a folder.
// They are older than the index: git reads a file again that is not.
func largeRepository(b *testing.B, files int) string {
	b.Helper()
	dir := b.TempDir()
	before := time.Now().Add(-time.Hour)
	for i := range files {
		path := filepath.Join(dir, fmt.Sprintf("d%03d", i/100), fmt.Sprintf("f%03d.txt", i%100))
		if i%100 == 0 {
			must.Do(b, os.Mkdir(filepath.Dir(path), 0o755))
		}
		must.Do(b, os.WriteFile(path, fmt.Appendf(nil, "file %d\n", i), 0o644))
		must.Do(b, os.Chtimes(path, before, before))
	}
	git(b, dir, "-c", "init.defaultBranch=main", "init", "--quiet")
	git(b, dir, "add", "--all")
	git(b, dir, "commit", "--quiet", "--message", "base")
	git(b, dir, "gc", "--quiet")
	return dir
}

// hugeRepository has files files in folders of a hundred, a hundred of which are in a
// folder. Many have the same content, which git keeps once.
func hugeRepository(b *testing.B, files int) string {
	b.Helper()
	dir := b.TempDir()
	git(b, dir, "-c", "init.defaultBranch=main", "init", "--quiet")
	cmd := gitCommand(b, dir, "fast-import", "--quiet")
	stream := must.Get(cmd.StdinPipe())(b)
	must.Do(b, cmd.Start())
	must.Do(b, errors.Join(importFiles(stream, files), stream.Close(), cmd.Wait()), "git fast-import")
	git(b, dir, "reset", "--quiet", "--hard", "main")
	git(b, dir, "update-index", "--refresh") // with files that are older than the index now
	return dir
}

// importFiles writes a commit of so many files for git fast-import.
func importFiles(to io.Writer, files int) error {
	const contents = 1000
	w := bufio.NewWriter(to)
	for i := range contents {
		text := fmt.Sprintf("file %d\n", i)
		fmt.Fprintf(w, "blob\nmark :%d\ndata %d\n%s\n", i+1, len(text), text)
	}
	fmt.Fprint(w, "commit refs/heads/main\ncommitter bench <bench@example.invalid> 1700000000 +0000\ndata 4\nbase\n")
	for i := range files {
		folder := fmt.Sprintf("d%03d", i/100)
		if i >= 100 {
			folder = fmt.Sprintf("e%03d/d%03d", i/10_000, i/100%100)
		}
		fmt.Fprintf(w, "M 100644 :%d %s/f%03d.txt\n", i%contents+1, folder, i%100)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// ignoreFiles puts files of a size, or a little more, into a folder that git ignores, a hundred in a folder.
func ignoreFiles(b *testing.B, repository string, files, size int) {
	b.Helper()
	must.Do(b, os.WriteFile(filepath.Join(repository, ".gitignore"), []byte("node_modules/\n"), 0o644))
	git(b, repository, "add", "--all")
	git(b, repository, "commit", "--quiet", "--message", "ignore")
	padding := strings.Repeat(" ", size)
	for i := range files {
		path := filepath.Join(repository, "node_modules", fmt.Sprintf("m%03d", i/100), fmt.Sprintf("f%03d.js", i%100))
		if i%100 == 0 {
			must.Do(b, os.MkdirAll(filepath.Dir(path), 0o755))
		}
		must.Do(b, os.WriteFile(path, fmt.Appendf(nil, "module.exports = %d%s\n", i, padding), 0o644))
	}
}
