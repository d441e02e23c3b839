package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

func git(b *testing.B, dir string, args ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", append([]string{"-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(gitEnvironment(), "HOME="+b.TempDir(), "PATH="+os.Getenv("PATH"))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, said.String())
	}
	return string(out)
}

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
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, "file %d\n", i), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(path, before, before); err != nil {
			b.Fatal(err)
		}
	}
	git(b, dir, "-c", "init.defaultBranch=main", "init", "--quiet")
	git(b, dir, "add", "--all")
	git(b, dir, "commit", "--quiet", "--message", "base")
	git(b, dir, "gc", "--quiet")
	return dir
}
