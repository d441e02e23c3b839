package github

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// waited is a clock that goes on when somebody waits.
type waited struct {
	mu sync.Mutex
	at time.Time
}

func (c *waited) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *waited) wait(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return nil
}

// Clients that share a file create 600 comments, and the forge, which has GitHub's limits, refuses
// none of them; one client without the file meets the limit at once.
func TestCreatesContentAtForgePace(t *testing.T) {
	clock := &waited{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	server := forgetest.New(t, forgetest.Options{Creations: forgetest.Creations{Minute: 80, Hour: 500, Now: clock.now}})
	number := server.AddRepository("octo", "widgets").AddIssue(forgetest.Issue{Title: "x"})
	file := filepath.Join(t.TempDir(), "pace")
	var clients []*Client
	for range 4 {
		c, err := New(Options{APIURL: server.APIURL, Token: server.Token, Wait: clock.wait, Pace: file, now: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	began := clock.now()
	for n := range 600 {
		if _, err := clients[n%len(clients)].Repository("octo/widgets").CreateComment(t.Context(), number, fmt.Sprint(n)); err != nil {
			t.Fatalf("comment %d: %v", n, err)
		}
	}
	if n := server.Limited(); n != 0 {
		t.Errorf("%d requests met the limit", n)
	}
	if took := clock.now().Sub(began); took < time.Hour || took > 70*time.Minute {
		t.Errorf("600 comments took %s", took)
	}
	unpaced, err := New(Options{APIURL: server.APIURL, Token: server.Token, Wait: func(context.Context, time.Duration) error { return context.Canceled }})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if _, err = unpaced.Repository("octo/widgets").CreateComment(t.Context(), number, fmt.Sprint(n)); err != nil {
			break
		}
	}
	if err == nil || server.Limited() == 0 {
		t.Error("without a pace the forge refuses nothing, so that this test shows nothing")
	}
}

// Whoever takes a turn, and in whatever order, no limit is passed.
func TestConcurrentRequestsTakeTurns(t *testing.T) {
	clock := &waited{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	file := filepath.Join(t.TempDir(), "pace")
	var turns []time.Time
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p := &pace{file: file, now: clock.now, wait: clock.wait}
			for range 75 {
				turn, err := p.turn()
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
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &pace{file: file, now: func() time.Time { return now }}
	if turn, err := p.turn(); err != nil || !turn.Equal(now) {
		t.Errorf("the turn is %v, %v", turn, err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Count(string(raw), "\n") != 2 {
		t.Errorf("the file holds %q, %v", raw, err)
	}
}

func TestRecognisesContentRequests(t *testing.T) {
	for line, want := range map[string]bool{
		"POST /repos/o/r/pulls": true, "POST /repos/o/r/issues/1/comments": true, "PATCH /repos/o/r/pulls/1": false, "GET /repos/o/r/pulls": false,
		"POST /graphql": false, "POST /repos/o/r/git/blobs": false,
	} {
		method, path, _ := strings.Cut(line, " ")
		req, err := http.NewRequest(method, "https://api.github.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := creates(req); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
