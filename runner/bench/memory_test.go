package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// memoryBelow is what all processes below others take: the sum of their proportional set sizes (PSS), in
// which a page that several of them share counts once: proc_pid_smaps(5). Those that end meanwhile
// are missed.
func memoryBelow(b *testing.B, parents ...int) (bytes int64) {
	b.Helper()
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		b.Skipf("the system does not tell of memory that processes share: %v", err)
	}
	children := childrenOfAll()
	for ; len(parents) > 0; parents = parents[1:] {
		for _, child := range children[parents[0]] {
			bytes += proportionalSize(child)
			parents = append(parents, child)
		}
	}
	return bytes
}

// childrenOfAll are the processes that each process has started: proc_pid_stat(5).
func childrenOfAll() map[int][]int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	for _, name := range stats {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var state string
		var parent int
		_, fields, _ := strings.Cut(string(raw), ") ")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if _, scanned := fmt.Sscan(fields, &state, &parent); err == nil && scanned == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

func proportionalSize(pid int) (bytes int64) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(raw)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return 0
}
