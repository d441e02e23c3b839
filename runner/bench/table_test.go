package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results are the figures so far, in the order of the benchmarks.
var results table

type table struct{ rows []row }

// row is a figure beside a limit or a peer's figure.
type row struct {
	figure      string
	ours, other quantity
	peer        string
	goal        float64 // highest ratio, or lowest where more is better; 0 for any
}

// quantity is a measured value, or the reason why there is none.
type quantity struct {
	value  float64
	unit   string
	better bool // if it is higher
	reason string
}

func duration(d time.Duration) quantity { return quantity{value: float64(d) / 1e6, unit: "ms"} }

func bytesOf(n int64) quantity { return quantity{value: float64(n) / 1e6, unit: "MB"} }

// rate is how many of n go into a time unit per; 0 where nothing was measured.
func rate(n int, took, per time.Duration, unit string) quantity {
	q := quantity{unit: unit, better: true}
	if took > 0 {
		q.value = float64(n) * float64(per) / float64(took)
	}
	return q
}

func (q quantity) String() string {
	switch {
	case q.unit == "":
		return q.reason
	case q.value < 9.95:
		return fmt.Sprintf("%.2f %s", q.value, q.unit)
	case q.value < 99.5:
		return fmt.Sprintf("%.1f %s", q.value, q.unit)
	}
	return fmt.Sprintf("%.0f %s", q.value, q.unit)
}

func (t *table) add(figure string, ours quantity, peer string, other quantity, goal float64) {
	t.rows = append(t.rows, row{figure, ours, other, peer, goal})
}

// time adds a duration; a limit of 0 is none.
func (t *table) time(figure string, ours, limit time.Duration) {
	if limit == 0 {
		t.add(figure, duration(ours), "", quantity{}, 0)
		return
	}
	t.add(figure, duration(ours), "limit", duration(limit), 1)
}

// against adds a duration beside that of a peer.
func (t *table) against(figure string, ours time.Duration, peer string, theirs time.Duration, goal float64) {
	t.add(figure, duration(ours), peer, duration(theirs), goal)
}

// bytes adds bytes of memory or of a disk.
func (t *table) bytes(figure string, ours, limit int64) {
	t.add(figure, bytesOf(ours), "limit", bytesOf(limit), 1)
}

// markdown is a row of a table. A ratio that misses its goal is bold.
func (r row) markdown() string {
	figure, ratio, goal, other := r.figure, "", "", r.other.String()
	if part, ok := strings.CutPrefix(figure, "  "); ok {
		figure = "… " + part
	}
	if r.peer != "" {
		other = r.peer + ", " + other
	}
	if r.other.value > 0 {
		of := r.ours.value / r.other.value
		ratio = fmt.Sprintf("%.2f", of)
		if r.goal > 0 && (of < r.goal) == r.ours.better {
			ratio = "**" + ratio + "**"
		}
	}
	if r.goal > 0 {
		goal = fmt.Sprintf("%.2f", r.goal)
		if r.ours.better {
			goal = "≥ " + goal
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", figure, r.ours, other, ratio, goal)
}

// served adds the part of the last duration that the scripted server took.
func (t *table) served(measured time.Duration) {
	t.time("  of that in the scripted server", measured, 0)
}

func (t *table) memory(seen []sighting) { t.bytes("  peak memory", highestPeak(seen), mostMemory) }

// memoryAsItIs adds what has no limit, since it grows with the repository.
func (t *table) memoryAsItIs(seen []sighting) {
	t.add("  peak memory", bytesOf(highestPeak(seen)), "", quantity{}, 0)
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
	fmt.Fprintf(to, "Machine: %s.\n\n| what | ours | peer or limit | ratio | goal |\n|---|--:|---|--:|--:|\n", machine())
	for _, r := range t.rows {
		fmt.Fprintln(to, r.markdown())
	}
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
