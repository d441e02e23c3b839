package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// results are the figures so far, in the order of the benchmarks.
var results table

type table struct{ rows []row }

// row is a figure beside a limit, or beside what another program takes for the same.
type row struct{ figure, ours, other, ratio, goal, verdict string }

// time adds a duration; a limit of 0 is none.
func (t *table) time(figure string, ours, limit time.Duration) {
	r := row{figure: figure, ours: milliseconds(ours)}
	if limit > 0 {
		r = r.beside("limit", milliseconds(limit), float64(ours)/float64(limit), 1)
	}
	t.rows = append(t.rows, r)
}

// against adds a duration beside that of a peer; goal is the highest ratio, 0 for any.
func (t *table) against(figure string, ours time.Duration, peer string, theirs time.Duration, goal float64) {
	r := row{figure: figure, ours: milliseconds(ours)}
	t.rows = append(t.rows, r.beside(peer, milliseconds(theirs), float64(ours)/float64(theirs), goal))
}

// without adds a duration whose peer is not on this machine.
func (t *table) without(figure string, ours time.Duration, peer string, goal float64) {
	t.rows = append(t.rows, row{figure: figure, ours: milliseconds(ours), other: peer + ": not on this machine", goal: fmt.Sprintf("%.2f", goal)})
}

// bytes adds bytes of memory or of a disk.
func (t *table) bytes(figure string, ours, limit int64) {
	r := row{figure: figure, ours: megabytes(ours)}
	t.rows = append(t.rows, r.beside("limit", megabytes(limit), float64(ours)/float64(limit), 1))
}

func (r row) beside(other, value string, ratio, goal float64) row {
	r.other, r.ratio = other+" "+value, fmt.Sprintf("%.2f", ratio)
	if goal == 0 {
		return r
	}
	r.goal, r.verdict = fmt.Sprintf("%.2f", goal), "ok"
	if ratio > goal {
		r.verdict = "over"
	}
	return r
}

// heading says what the rows that follow are about.
func (t *table) heading(text string) { t.rows = append(t.rows, row{figure: text}) }

// served adds the part of the last duration that the scripted server took.
func (t *table) served(measured time.Duration) {
	t.time("  of that in the scripted server", measured, 0)
}

func (t *table) memory(seen []sighting) { t.bytes("  peak memory", highestPeak(seen), mostMemory) }

// memoryAsItIs adds what has no limit, since it grows with the repository.
func (t *table) memoryAsItIs(seen []sighting) {
	t.rows = append(t.rows, row{figure: "  peak memory", ours: megabytes(highestPeak(seen))})
}

func highestPeak(seen []sighting) (highest int64) {
	for _, s := range seen {
		highest = max(highest, s.Memory)
	}
	return highest
}

func (t *table) print(to io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(to, "machine: %s\n", machine())
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tours\tpeer or limit\tratio\tgoal\t")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.figure, r.ours, r.other, r.ratio, r.goal, r.verdict)
	}
	w.Flush()
}

func machine() string {
	kernel, err := exec.Command("uname", "-sr").Output()
	if err != nil {
		kernel = []byte(runtime.GOOS)
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", processor(), runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
}

// processor is the model of the CPU where Linux tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

func median(seen []sighting, of func(sighting) time.Duration) time.Duration {
	values := make([]time.Duration, 0, len(seen))
	for _, s := range seen {
		values = append(values, of(s))
	}
	return medianOf(values)
}

func medianOf(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
