package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// disk is a file in memory that can fail.
type disk struct {
	bytes.Buffer
	room        int // bytes that a write may add; less than 0 for no limit
	truncateErr error
	syncErr     error
	synced      int // bytes that were there at the last sync
	closed      bool
}

func (d *disk) Write(p []byte) (int, error) {
	if d.room < 0 || len(p) <= d.room {
		d.room -= min(len(p), max(d.room, 0))
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.room])
	d.room = 0
	return n, syscall.ENOSPC
}

func (d *disk) Truncate(size int64) error {
	if d.truncateErr == nil {
		d.Buffer.Truncate(int(size))
	}
	return d.truncateErr
}

func (d *disk) Sync() error {
	if d.syncErr == nil {
		d.synced = d.Len()
	}
	return d.syncErr
}

func (d *disk) Close() error {
	d.closed = true
	return nil
}

// typeWarning is the event of these tests, and warned its data.
const typeWarning Type = "warning"

type warned struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func warning(i int) warned { return warned{Code: "test", Message: fmt.Sprintf("warning %d", i)} }

// appendWarning appends warning i.
func appendWarning(t *testing.T, log *Log, i int) {
	t.Helper()
	must.Get(log.Append(typeWarning, warning(i)))(t)
}

func contents(t testing.TB, path string) string {
	t.Helper()
	raw := must.Get(os.ReadFile(path))(t)
	return string(raw)
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	log := must.Get(Create(path, Options{}))(t)
	t.Cleanup(func() { _ = log.Close() })
	info := must.Get(os.Stat(path))(t)
	must.Same(t, 0o600, info.Mode().Perm(), "the log has mode", "others can read it")
	must.Same(t, Genesis, log.Head(), "an empty log's head")
	must.Is(t, os.ErrExist, must.Err(Create(path, Options{})), "a second log at the same path")
	must.Fail(t, "", must.Err(Create(filepath.Join(path, "x"), Options{})), "a log below a file was made")
}

func TestAppendWritesLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	zone := time.FixedZone("", 3600)
	log := must.Get(Create(path, Options{Clock: func() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 123456789, zone) }}))(t)
	first := must.Get(log.Append(typeWarning, warned{Code: "a", Message: "<b> & 'c'"}))(t)
	must.Get(log.Append("plan", struct {
		Steps []string `json:"steps"`
	}{}))(t)
	must.Do(t, log.Close())
	line := `{"v":1,"seq":1,"time":"2026-03-01T09:00:00.123456789Z","agent":"main","type":"warning","data":{"code":"a","message":"<b> & 'c'"},"prev":"` + Genesis + `"}`
	want := line + "\n" + `{"v":1,"seq":2,"time":"2026-03-01T09:00:00.123456789Z","agent":"main","type":"plan","data":{"steps":null},"prev":"` + lineDigest([]byte(line)) + `"}` + "\n"
	must.Same(t, want, contents(t, path), "log")
	must.Same(t, line, string(must.Get(first.Line())(t)), "the returned event's line")
}

func TestConcurrentAppends(t *testing.T) {
	const writers, each = 8, 50
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	var told []int64
	log := must.Get(Create(path, Options{Sink: func(e Event) { told = append(told, e.Seq) }}))(t)
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for i := range each {
				must.Is(t, nil, must.Err(log.Append(typeWarning, warning(i))))
				if i%10 == 0 {
					must.Is(t, nil, log.Sync())
				}
			}
		})
	}
	wait.Wait()
	must.Do(t, log.Close())
	must.Same(t, log.Head(), must.Get(VerifyChain(strings.NewReader(contents(t, path))))(t), "chain ends in", "the log in")
	var want []int64
	for i := range int64(writers * each) {
		want = append(want, i+1)
	}
	must.Same(t, want, told, "the sink was told")
}

func TestRedactsEveryString(t *testing.T) {
	const secret = "p@ss\"\\\nword é<x>"
	var lines bytes.Buffer
	log := newLog(&disk{room: -1}, Options{
		Redact: func(s string) string { return strings.ReplaceAll(s, secret, "[gone]") },
		Sink: func(e Event) {
			line, err := e.Line()
			must.Is(t, nil, err)
			lines.Write(append(line, '\n'))
		},
	})
	literal := must.Get(plainjson.Marshal(secret))(t)
	escaped := strings.Trim(string(literal), `"`)
	raw := json.RawMessage(`{"` + escaped + `":["p@ss\u0022\\\nword \u00e9\u003cx\u003e",{"n":1.50,"deep":"a ` + escaped + `"}]}`)
	for _, h := range []struct {
		kind Type
		data any
	}{
		{typeWarning, warned{Code: secret, Message: "before " + secret + " after"}},
		{"model.response", raw},
		{"tool.finished", map[string]any{"output": secret, "detail": map[string]any{secret: []string{secret}}}},
	} {
		must.Get(log.Append(h.kind, h.data))(t)
	}
	got := lines.String()
	must.Same(t, 8, strings.Count(got, "[gone]"), got)
	must.Lack(t, got, "p@ss")
	must.Contain(t, got, `{"[gone]":["[gone]",{"n":1.50,"deep":"a [gone]"}]}`)
}

func TestRedactsOnlyReadableStrings(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":"x\u003c\/é","b":[1e3,true,null,"",{}],"c":"\\"}`: `{"a":"x\u003c\/é","b":[1e3,true,null,"",{}],"c":"\\"}`,
		`{"type":"reasoning","id":"opaque-value-1","encrypted_content":"xxopaque-value-1xx","text":"opaque-value-1","opaque-value-1":["opaque-value-1"]}`: `{"type":"reasoning","id":"opaque-value-1","encrypted_content":"xxopaque-value-1xx","text":"[secret]","[secret]":["[secret]"]}`,
	} {
		must.Same(t, want, string(must.Get(redactStrings([]byte(raw), func(s string) string { return strings.ReplaceAll(s, "opaque-value-1", "[secret]") }))(t)))
	}
}

func TestAppendWritesValidUTF8(t *testing.T) {
	d := &disk{room: -1}
	must.Get(newLog(d, Options{}).Append("model.response", json.RawMessage("\"a\xffb\"")))(t)
	must.Contain(t, d.String(), `"a`+"\ufffd"+`b"`)
}

func TestLogGoesOnAfterRefusedEvent(t *testing.T) {
	d := &disk{room: -1}
	log := newLog(d, Options{})
	must.Fail(t, "", must.Err(log.Append("model.response", json.RawMessage(`{`))), "half an object was written")
	must.Is(t, ErrTooLarge, must.Err(log.Append(typeWarning, warned{Message: strings.Repeat("x", MaxLine)})))
	must.Same(t, 1, must.Get(log.Append(typeWarning, warning(1)))(t).Seq, "the log does not go on after refused events")
	must.Get(VerifyChain(&d.Buffer))(t)
}

func TestFullDiskStopsLog(t *testing.T) {
	d := &disk{room: -1}
	log := newLog(d, Options{})
	appendWarning(t, log, 1)
	head, whole := log.Head(), d.String()
	d.room = 20
	_, err := log.Append(typeWarning, warning(2))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free disk space") {
		t.Errorf("append to a full disk: %v", err)
	}
	must.Same(t, whole, d.String(), "a torn line is left")
	must.Same(t, head, log.Head(), "a torn line is left")
	d.room = -1
	must.Is(t, syscall.ENOSPC, must.Err(log.Append(typeWarning, warning(3))), "the log goes on after a failed write")
	must.Is(t, syscall.ENOSPC, log.Sync(), "sync forgets the failed write")
	must.Is(t, syscall.ENOSPC, log.Close(), "close forgets the failed write")
	if d.synced != len(whole) || !d.closed {
		t.Errorf("%d of %d bytes are durable, closed %t", d.synced, len(whole), d.closed)
	}
}

func TestReportsUnremovedTornLine(t *testing.T) {
	d := &disk{room: -1, truncateErr: syscall.EIO}
	log := newLog(d, Options{})
	appendWarning(t, log, 1)
	d.room = 20
	_, err := log.Append(typeWarning, warning(2))
	must.Is(t, syscall.ENOSPC, err, "append")
	must.Is(t, syscall.EIO, err, "append")
	head, err := VerifyChain(&d.Buffer)
	var torn *TornError
	if !errors.As(err, &torn) || torn.line != 2 || torn.Bytes != 20 || head != log.Head() {
		t.Errorf("chain: %s, %v", head, err)
	}
}

func TestSync(t *testing.T) {
	d := &disk{room: -1}
	log := newLog(d, Options{})
	appendWarning(t, log, 1)
	must.Same(t, 0, d.synced, "each append is synced")
	must.Do(t, log.Sync())
	must.Same(t, d.Len(), d.synced, "bytes are durable")
	d.syncErr = syscall.EIO
	must.Do(t, log.Sync(), "a sync with nothing to do")
	appendWarning(t, log, 2)
	must.Is(t, syscall.EIO, log.Sync(), "failed sync")
	d.syncErr = nil
	must.Is(t, syscall.EIO, must.Err(log.Append(typeWarning, warning(3))), "the log goes on although its disk is in doubt")
}

func TestClose(t *testing.T) {
	d := &disk{room: -1}
	log := newLog(d, Options{})
	appendWarning(t, log, 1)
	for range 2 {
		must.Do(t, log.Close())
	}
	if d.synced != d.Len() || !d.closed {
		t.Errorf("%d of %d bytes are durable, closed %t", d.synced, d.Len(), d.closed)
	}
	must.Is(t, errClosed, must.Err(log.Append(typeWarning, warning(2))), "append after close")
}
