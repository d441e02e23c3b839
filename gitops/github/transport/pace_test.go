package transport

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Whoever takes a turn, and in whatever order, no limit is passed.
func TestConcurrentRequestsTakeTurns(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "pace")
	var turns []time.Time
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p := &Pacer{File: file, Clock: clockAt{Time: now}}
			for range 75 {
				turn, err := p.reserveTurn()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				turns = append(turns, turn)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.SortFunc(turns, time.Time.Compare)
	for _, limit := range paces {
		for n := limit.most; n < len(turns); n++ {
			if turns[n].Sub(turns[n-limit.most]) <= limit.over-time.Millisecond {
				t.Fatalf("turn %d is %s after turn %d", n, turns[n].Sub(turns[n-limit.most]), n-limit.most)
			}
		}
	}
}

func TestReadsPaceFile(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "pace")
	text := fmt.Sprintf("x\n-5\n99999999999999999999\n%d\n%d\n%d\n", now.Add(-2*time.Hour).UnixMilli(), now.Add(48*time.Hour).UnixMilli(), now.Add(-time.Second).UnixMilli())
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	p := &Pacer{File: file, Clock: clockAt{Time: now}}
	if turn, err := p.reserveTurn(); err != nil || !turn.Equal(now) {
		t.Errorf("the turn is %v, %v", turn, err)
	}
	must.Same(t, 2, strings.Count(string(must.Get(os.ReadFile(file))(t)), "\n"), "the file holds")
}

func TestRecognisesContentRequests(t *testing.T) {
	for line, want := range map[string]bool{
		"POST /repos/o/r/pulls": true, "POST /repos/o/r/issues/1/comments": true, "PATCH /repos/o/r/pulls/1": false, "GET /repos/o/r/pulls": false,
		"POST /graphql": false, "POST /repos/o/r/git/blobs": false,
	} {
		method, path, _ := strings.Cut(line, " ")
		req := must.Get(http.NewRequest(method, "https://api.github.com"+path, nil))(t)
		must.Same(t, want, createsContent(req), line)
	}
}
