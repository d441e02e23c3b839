package extensions

import (
	"fmt"
	"os"
	"sync"

	"github.com/agent-ci/agent-ci/runner/record"
)

// sharedLog is a file of the run directory for what several goroutines write.
type sharedLog struct {
	mu   sync.Mutex
	name string // below the run directory
	file *os.File
	to   *record.LogWriter
}

// newLog makes the log of a tool.
func newLog(r *record.Record, name string) (*sharedLog, error) {
	l := new(sharedLog)
	for n := 1; l.name == "" || r.Has(l.name); n++ {
		l.name = record.LogName("tool", n, name)
	}
	var err error
	if l.file, err = r.Create(l.name); err != nil {
		return nil, fmt.Errorf("make the log of the tool %s: %w", name, err)
	}
	l.to = record.NewLogWriter(l.file, mostLog, r.Redact)
	return l, nil
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

func (l *sharedLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to.Flush()
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", l.name, err)
	}
	return nil
}
