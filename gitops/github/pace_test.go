package github

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// waited is a clock that goes on when somebody waits.
type waited struct {
	mu sync.Mutex
	at time.Time
}

func (c *waited) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *waited) Wait(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return nil
}

// Clients that share a file create 600 comments, and the forge, which has GitHub's limits, refuses
// none of them; one client without the file meets the limit at once.
func TestCreatesContentAtForgePace(t *testing.T) {
	clock := &waited{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	server := forgetest.New(t, forgetest.Options{Creations: forgetest.Creations{Minute: 80, Hour: 500, Clock: clock}})
	number := server.AddRepository("octo", "widgets").AddIssue(forgetest.Issue{Title: "x"})
	file := filepath.Join(t.TempDir(), "pace")
	var clients []*Client
	for range 4 {
		clients = append(clients, must.Get(New(Options{APIURL: server.APIURL, Token: server.Token, Clock: clock, Pace: file}))(t))
	}
	began := clock.Now()
	for n := range 600 {
		must.Do(t, must.Err(clients[n%len(clients)].Repository("octo/widgets").CreateComment(t.Context(), number, fmt.Sprint(n))), "comment", n)
	}
	must.Same(t, 0, server.Limited())
	if took := clock.Now().Sub(began); took < time.Hour || took > 70*time.Minute {
		t.Errorf("600 comments took %s", took)
	}
	unpaced, err := New(Options{APIURL: server.APIURL, Token: server.Token, Clock: forgetest.AtOnce{}})
	must.Do(t, err)
	for n := range 100 {
		if _, err = unpaced.Repository("octo/widgets").CreateComment(t.Context(), number, fmt.Sprint(n)); err != nil {
			break
		}
	}
	if err == nil || server.Limited() == 0 {
		t.Error("without a pace the forge refuses nothing, so that this test shows nothing")
	}
}
