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

type row struct{ figure, measured, limit, verdict string }

// time adds a duration; a limit of 0 is none.
func (t *table) time(figure string, measured, limit time.Duration) {
	r := row{figure: figure, measured: milliseconds(measured)}
	if limit > 0 {
		r.limit, r.verdict = milliseconds(limit), verdict(measured <= limit)
	}
	t.rows = append(t.rows, r)
}

// heading says what the rows that follow are about.
func (t *table) heading(text string) { t.rows = append(t.rows, row{figure: text}) }

// served adds the part of the last duration that the scripted server took.
func (t *table) served(measured time.Duration) {
	t.time("  of that in the scripted server", measured, 0)
}

func (t *table) memory(seen []sighting) {
	highest := highestPeak(seen)
	t.rows = append(t.rows, row{"  peak memory", megabytes(highest), megabytes(mostMemory), verdict(highest <= mostMemory)})
}

// memoryOf adds bytes of memory.
func (t *table) memoryOf(figure string, measured, limit int64) { t.disk(figure, measured, limit) }

// memoryAsItIs adds what has no limit, since it grows with the repository.
func (t *table) memoryAsItIs(seen []sighting) {
	t.rows = append(t.rows, row{figure: "  peak memory", measured: megabytes(highestPeak(seen))})
}

func highestPeak(seen []sighting) (highest int64) {
	for _, s := range seen {
		highest = max(highest, s.Memory)
	}
	return highest
}

// disk adds bytes of a disk.
func (t *table) disk(figure string, measured, limit int64) {
	t.rows = append(t.rows, row{figure, megabytes(measured), megabytes(limit), verdict(measured <= limit)})
}

func verdict(within bool) string {
	if within {
		return "ok"
	}
	return "over"
}

func (t *table) print(to io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(to, "machine: %s\n", machine())
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmeasured\tlimit\t")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.figure, r.measured, r.limit, r.verdict)
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
