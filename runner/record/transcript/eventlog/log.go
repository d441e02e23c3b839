package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// MainAgent is the Agent of events of the run's own agent.
const MainAgent = "main"

// MaxLine is the maximum length of a line in bytes, without its newline.
const MaxLine = 64 << 20

// ErrTooLarge reports an event longer than MaxLine. The log still accepts other events.
var ErrTooLarge = errors.New("event is longer than a line of a transcript may be (64 MiB)")

// errClosed is returned by Append after Close.
var errClosed = errors.New("transcript is closed")

// Genesis is Prev of the first event.
var Genesis = strings.Repeat("0", 2*sha256.Size)

// Options configures a log. The zero value may be used.
type Options struct {
	// Clock returns the time of events; nil means time.Now.
	Clock func() time.Time
	// Redact redacts a decoded string of an event's data. It is the last defence; secrets should be
	// removed before.
	Redact func(string) string
	// BeforeWrite gets the digest of each line before the line is written.
	BeforeWrite func(digest string)
	// Sink gets each event after it was written, in order and one at a time. It must not use the
	// log.
	Sink func(Event)
}

// Log appends the events of one agent to a transcript. Several agents may share a transcript. Log
// is safe for concurrent use.
type Log struct {
	*ledger
	agent string
}

// ForAgent returns the same log for the events of a subagent.
func (l *Log) ForAgent(agent string) *Log { return &Log{l.ledger, agent} }

// ledger is the file that the logs of several agents share.
type ledger struct {
	options Options
	dir     string // synced once, so that the name of the file is durable, too

	mu     sync.Mutex
	file   file
	size   int64 // of the complete lines
	seq    int64
	closed bool
	err    error // the write or sync error after which the log accepts no event
	synced int64 // number of the last event that is certainly on disk

	head atomic.Pointer[string] // written under mu and read without, because Abandon must not wait for mu
}

// file has the methods of *os.File that a Log uses.
type file interface {
	Write([]byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Create begins the log of a new run at path. Only the owner may read the file. It fails if the
// file exists.
func Create(path string, o Options) (*Log, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create transcript: %w", err)
	}
	l := newLog(f, o)
	l.dir = filepath.Dir(path)
	return l, nil
}

// newLog returns the log of the run's own agent in an empty file.
func newLog(f file, o Options) *Log {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	l := &Log{&ledger{options: o, file: f}, MainAgent}
	first := Genesis
	l.head.Store(&first)
	return l
}

// NewEvent returns an event with redacted strings. It has no time and no position in a log.
func NewEvent(agent string, t Type, data any, redact func(string) string) (Event, error) {
	raw, err := encodeData(data, redact)
	return Event{V: Version, Agent: agent, Type: t, Data: raw}, err
}

// Append appends an event of the log's agent in one write, and returns it as written. After a
// failed write, every Append returns that error.
func (l *Log) Append(t Type, data any) (Event, error) {
	e, err := NewEvent(l.agent, t, data, l.options.Redact)
	if err != nil {
		return Event{}, fmt.Errorf("append %s to transcript: %w", t, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return Event{}, l.err
	}
	e.Seq, e.Time, e.Prev = l.seq+1, l.options.Clock().UTC().Round(0), l.Head()
	if err := l.writeLine(e); err != nil {
		return Event{}, fmt.Errorf("append %s to transcript: %w", t, err)
	}
	if l.options.Sink != nil {
		l.options.Sink(e)
	}
	return e, nil
}

// writeLine appends an event's line and advances the chain. After a failed write, it truncates the
// incomplete line, and the log accepts no more events.
func (l *Log) writeLine(e Event) error {
	line, err := e.Line()
	if err != nil {
		return err
	}
	if len(line) > MaxLine {
		return ErrTooLarge
	}
	head := lineDigest(line)
	if l.options.BeforeWrite != nil {
		l.options.BeforeWrite(head)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		l.err = fmt.Errorf("transcript ends at event %d, free disk space and go on: %w", l.seq, err)
		if err := l.file.Truncate(l.size); err != nil {
			return errors.Join(l.err, fmt.Errorf("remove the torn line: %w", err))
		}
		return l.err
	}
	l.head.Store(&head)
	l.seq, l.size = e.Seq, l.size+int64(len(line))+1
	return nil
}

// Head returns the SHA-256 (hex) of the last event's line. Before the first event it is 64 zeros.
func (l *Log) Head() string { return *l.head.Load() }

// Sync waits until all earlier events are on disk. After an error the log accepts no more events,
// because the content of the disk is unknown.
func (l *Log) Sync() error {
	l.mu.Lock()
	lastSeq, err := l.seq, l.err
	synced := lastSeq == l.synced
	firstSync := l.synced == 0
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if synced {
		return nil
	}
	err = l.file.Sync()
	if err == nil && firstSync {
		err = syncDir(l.dir)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = fmt.Errorf("make transcript durable: %w", err)
		return l.err
	}
	l.synced = max(l.synced, lastSeq)
	return nil
}

// syncDir makes the names in a folder durable. It does nothing for "".
func syncDir(path string) error {
	if path == "" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Abandon returns the log's head and closes the log. If another goroutine is writing, it does not close the
// log: the other's sink may block forever.
func (l *Log) Abandon() (head string, err error) {
	if l.mu.TryLock() {
		l.mu.Unlock()
		err = l.Close()
	}
	return l.Head(), err
}

// Close syncs and closes the log. After a failed write it returns that error, and still syncs the events
// before the failed one.
func (l *Log) Close() error {
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.err == nil {
		l.err = errClosed
		return errors.Join(err, l.file.Close())
	}
	return errors.Join(err, l.file.Sync(), l.file.Close())
}

// Line returns the event as a line of the log, without the newline.
func (e Event) Line() ([]byte, error) {
	return plainjson.Marshal(e)
}

// encodeData returns data as compact JSON with redacted strings. A nil redact redacts nothing.
func encodeData(data any, redact func(string) string) (json.RawMessage, error) {
	raw, err := plainjson.Marshal(data)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) { // encode copies a json.RawMessage without a check
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if redact == nil {
		return raw, nil
	}
	return redactStrings(raw, redact)
}

// lineDigest returns the SHA-256 (hex) of a line without its newline.
func lineDigest(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
