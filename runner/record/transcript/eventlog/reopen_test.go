package eventlog

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// threeWarnings is a log with three events, and its bytes.
func threeWarnings(t *testing.T) (path string, whole []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "transcript.jsonl")
	log := must.Get(Create(path, Options{}))(t)
	for i := range 3 {
		appendWarning(t, log, i)
	}
	must.Do(t, log.Close())
	return path, []byte(contents(t, path))
}

func TestReopenDropsTornLine(t *testing.T) {
	path, whole := threeWarnings(t)
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := range len(whole) - last + 1 { // the last line, cut at each byte
		must.Do(t, os.WriteFile(path, whole[:len(whole)-cut], 0o600))
		log, torn, err := Reopen(path, Options{})
		must.Do(t, err, "cut", cut)
		wantSeq, wantTorn := int64(2), len(whole)-cut-last
		if cut == 0 {
			wantSeq, wantTorn = 3, 0
		}
		if log.seq != wantSeq || torn != wantTorn {
			t.Fatalf("cut by %d: %d events, %d bytes torn; want %d, %d", cut, log.seq, torn, wantSeq, wantTorn)
		}
		if e, err := log.Append(typeWarning, warning(9)); err != nil || e.Seq != wantSeq+1 {
			t.Fatalf("append: %v, %v", e.Seq, err)
		}
		must.Do(t, log.Close())
		f := must.Get(os.Open(path))(t)
		head, err := VerifyChain(f)
		f.Close()
		if err != nil || head != log.Head() {
			t.Fatalf("cut by %d: the chain ends in %s, %v", cut, head, err)
		}
	}
}

func TestReopenRefusesAlteredLog(t *testing.T) {
	path, whole := threeWarnings(t)
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(string(whole), "warning 1", "warning 7", 1)), 0o600))
	if log, _, err := Reopen(path, Options{}); err == nil {
		log.Close()
		t.Error("an altered transcript was opened to be added to")
	}
}

func TestReopenRefusesPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	must.Do(t, syscall.Mkfifo(path, 0o600))
	if _, _, err := Reopen(path, Options{}); err == nil || !strings.HasSuffix(err.Error(), "is not a regular file") {
		t.Errorf("got %v", err)
	}
}
