package record

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func TestReusesValidBaselines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baselines")
	b := must.Get(OpenBaselines(path))(t)
	defer b.Close()
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	must.Do(t, b.PutGreen("key", "run-1", now))
	write := func(name, content string) {
		must.Do(t, os.WriteFile(filepath.Join(path, name), []byte(content), 0o600))
	}
	write("red", `{"run_id":"run-1","at":"2026-03-01T09:00:00Z","state":"red"}`)
	write("torn", `{"run_id":"run-1","at":"2026-0`)
	write("name", `{"run_id":"](https://example.com)","at":"2026-03-01T09:00:00Z","state":"green"}`)
	must.Do(t, os.Symlink("key", filepath.Join(path, "link")))
	must.Do(t, os.Mkdir(filepath.Join(path, "folder"), 0o700))
	for _, c := range []struct {
		key  string
		at   time.Time
		want string
	}{
		{"key", now, "run-1"},
		{"key", now.Add(baselineLifetime), "run-1"},
		{"key", now.Add(baselineLifetime + time.Second), ""},
		{"key", now.Add(-time.Second), ""},
		{"red", now, ""},
		{"torn", now, ""},
		{"name", now, ""},
		{"folder", now, ""},
		{"gone", now, ""},
		{"../baselines/key", now, ""},
	} {
		must.Same(t, c.want, b.GreenRun(c.key, c.at), c.key, c.at)
	}
	if err := b.PutGreen("key", "run-2", now); err != nil || b.GreenRun("key", now) != "run-2" {
		t.Errorf("kept by another run: %v", err)
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(path, "pipe"), 0o600))
	must.Do(t, os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(path, "escape")))
	for _, key := range []string{"pipe", "escape", "link"} {
		if err := b.PutGreen(key, "run-3", now); err != nil || b.GreenRun(key, now) != "run-3" || b.GreenRun("key", now) != "run-2" {
			t.Errorf("kept in place of a %s: %v", key, err)
		}
	}
	b.RemoveExpired(time.Now())
	if b.GreenRun("key", now) == "" {
		t.Error("what is good was forgotten")
	}
	b.RemoveExpired(time.Now().Add(2 * baselineLifetime))
	must.Same(t, "", b.GreenRun("key", now), "what is no good is there")
}
