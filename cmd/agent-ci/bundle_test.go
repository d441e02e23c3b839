package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// bundle is the run directory of a first half.
type bundle struct {
	*publishing
	dir string
}

// newBundle makes a bundle in the folder of a world.
func newBundle(t *testing.T) bundle {
	t.Helper()
	w := newPublishing(t)
	cmd, out := w.run("louder")
	cmd.Args = append(cmd.Args, "--publish", "none")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bundle{w, filepath.Join(w.dir, "clone1.run")}
}

// copied is the same bundle in another folder.
func (b bundle) copied(t *testing.T) bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	if err := os.CopyFS(dir, os.DirFS(b.dir)); err != nil {
		t.Fatal(err)
	}
	world := *b.publishing
	world.t = t
	return bundle{&world, dir}
}

// alter changes the events of one kind and makes the chain fit again, as who
// wrote the bundle can.
func (b bundle) alter(kind string, change func(data map[string]any)) {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "transcript.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	prev := ""
	for line := range strings.Lines(string(raw)) {
		var event map[string]any
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&event); err != nil {
			b.t.Fatal(err)
		}
		if event["type"] == kind {
			change(event["data"].(map[string]any))
		}
		if prev != "" {
			event["prev"] = prev
		}
		text, err := json.Marshal(event)
		if err != nil {
			b.t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		prev = hex.EncodeToString(sum[:])
		lines = append(lines, string(text)+"\n")
	}
	b.put("transcript.jsonl", strings.Join(lines, ""))
	b.result(func(result map[string]any) { result["transcript_sha256"] = prev })
}

func (b bundle) result(change func(map[string]any)) {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "result.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(raw, &result); err != nil {
		b.t.Fatal(err)
	}
	change(result)
	if raw, err = json.Marshal(result); err != nil {
		b.t.Fatal(err)
	}
	b.put("result.json", string(raw))
}

func (b bundle) put(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// replace puts something else in the place of a file.
func (b bundle) replace(name string, with func(path string) error) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.RemoveAll(path); err != nil {
		b.t.Fatal(err)
	}
	if err := with(path); err != nil {
		b.t.Fatal(err)
	}
}

func (b bundle) publish(args ...string) string {
	b.t.Helper()
	clone := filepath.Join(b.publishing.dir, "clone1")
	b.git(clone, "checkout", "--quiet", ".")
	cmd := exec.CommandContext(b.t.Context(), binary, append([]string{"publish", b.dir, "--quiet", "--repo", clone}, args...)...)
	cmd.Env, cmd.Dir = b.env, b.publishing.dir
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func TestBundleIsPublished(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.alter("task", func(map[string]any) {}) // what alter does beside is sound
	if out := b.publish(); !strings.HasPrefix(out, "changed/pull_request: ") {
		t.Errorf("the bundle ended in %s", out)
	}
}

// TestBundleOfAnAttacker has what a first half could hand over that was taken
// over by its agent. Nothing of it may reach the forge.
func TestBundleOfAnAttacker(t *testing.T) {
	t.Parallel()
	set := func(kind, field string, value any) func(bundle) {
		return func(b bundle) { b.alter(kind, func(data map[string]any) { data[field] = value }) }
	}
	outside := func(name string) func(bundle) {
		return func(b bundle) {
			aside := filepath.Join(b.publishing.dir, "aside")
			b.replace(name, func(path string) error {
				if err := os.WriteFile(aside, []byte("precious"), 0o600); err != nil {
					return err
				}
				return os.Symlink(aside, path)
			})
		}
	}
	pipe := func(name string) func(bundle) {
		return func(b bundle) { b.replace(name, func(path string) error { return syscall.Mkfifo(path, 0o600) }) }
	}
	protecting := func(patterns ...string) func(bundle) {
		return func(b bundle) {
			b.alter("run.started", func(data map[string]any) { data["job"] = object{"policy": object{"protect": patterns}} })
		}
	}
	whole := newBundle(t)
	for _, c := range []struct {
		name   string
		attack func(bundle)
		want   string // begins the output
	}{
		{"one event altered, not chained again", func(b bundle) {
			raw, err := os.ReadFile(filepath.Join(b.dir, "transcript.jsonl"))
			if err != nil {
				b.t.Fatal(err)
			}
			b.put("transcript.jsonl", strings.Replace(string(raw), `"branch":"agent-ci/task"`, `"branch":"agent-ci/else"`, 1))
		}, "invalid_input/bundle: "},
		{"another end than the result names", func(b bundle) {
			b.result(func(r map[string]any) { r["transcript_sha256"] = strings.Repeat("0", 64) })
		}, "invalid_input/bundle: "},
		{"the base as branch", set("workspace", "branch", "main"), "invalid_input/bundle: "},
		{"a branch of somebody else", set("workspace", "branch", "release"), "invalid_input/bundle: "},
		{"a branch that leads away", set("workspace", "branch", "agent-ci/../../heads/main"), "invalid_input/bundle: "},
		{"another repository", set("workspace", "repository", "octo/gadgets"), "invalid_input/bundle: "},
		{"a base that is no commit", set("workspace", "base_sha", "../../etc/passwd"), "invalid_input/unknown_base: "},
		{"a base that nobody has", set("workspace", "base_sha", strings.Repeat("1", 40)), "invalid_input/unknown_base: "},
		{"another base branch's name", set("workspace", "base", "../main"), "invalid_input/bundle: "},
		{"a base branch that is not there", set("workspace", "base", "gone"), "invalid_input/bundle: "},
		{"a run id for a trailer", set("run.started", "run_id", "x\nAgent-CI-Base: y"), "invalid_input/bundle: "},
		{"another tree", set("change", "tree_sha", strings.Repeat("2", 40)), "invalid_input/bundle: "},
		{"a tree that is a path", set("change", "tree_sha", "../../etc/passwd"), "invalid_input/bundle: "},
		{"files that hide others", set("change", "files", []any{map[string]any{"path": "harmless", "status": "A"}}), "invalid_input/bundle: "},
		{"no end", func(b bundle) {
			raw, err := os.ReadFile(filepath.Join(b.dir, "transcript.jsonl"))
			if err != nil {
				b.t.Fatal(err)
			}
			lines := strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n")
			b.put("transcript.jsonl", strings.Join(lines[:len(lines)-1], ""))
			b.alter("", nil)
		}, "invalid_input/bundle: "},
		{"an end that failed", set("run.finished", "outcome", "policy_violation"), "invalid_input/bundle: "},
		{"a pattern that is none", protecting("a/[b"), "invalid_input/bundle: "},
		{"patterns without end", protecting(slices.Repeat([]string{"**/**/a*"}, 10_001)...), "invalid_input/bundle: "},
		{"a job that is none", set("run.started", "job", []any{1}), "invalid_input/bundle: "},
		{"a pack that is none", func(b bundle) { b.put("changes.pack", "PACK") }, "invalid_input/bundle: "},
		{"no pack", func(b bundle) { b.replace("changes.pack", func(string) error { return nil }) }, "invalid_input/bundle: "},
		{"a pack that leads away", outside("changes.pack"), "invalid_input/bundle: "},
		{"a patch that leads away", outside("changes.patch"), "invalid_input/bundle: "},
		{"a body that leads away", outside("pull_request.md"), "invalid_input/bundle: "},
		{"a folder that leads away", func(b bundle) {
			b.replace("state", func(path string) error { return os.Symlink(b.publishing.dir, path) })
		}, "invalid_input/bundle: "},
		{"a pipe as pack", pipe("changes.pack"), "invalid_input/bundle: "},
		{"a pipe as result", pipe("result.json"), "invalid_input/bundle: "},
		{"a folder as transcript", func(b bundle) {
			b.replace("transcript.jsonl", func(path string) error { return os.Mkdir(path, 0o700) })
		}, "invalid_input/bundle: "},
		{"a huge result", func(b bundle) {
			if err := os.Truncate(filepath.Join(b.dir, "result.json"), 1<<40); err != nil {
				b.t.Skip("this file system has no such files:", err)
			}
		}, "invalid_input/bundle: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := whole.copied(t)
			c.attack(b)
			before := b.git(b.repo.Dir, "for-each-ref")
			if out := b.publish(); !strings.HasPrefix(out, c.want) {
				t.Errorf("the bundle ended in %s, want %s", out, c.want)
			}
			if after := b.git(b.repo.Dir, "for-each-ref"); after != before {
				t.Errorf("branches: %s, before %s", after, before)
			}
			if list := b.repo.PullRequests(); len(list) != 0 {
				t.Errorf("there are %d pull requests", len(list))
			}
			if raw, err := os.ReadFile(filepath.Join(b.publishing.dir, "aside")); err == nil && string(raw) != "precious" {
				t.Errorf("a file outside became %q", raw)
			}
		})
	}
}

// TestBundleOnAnOlderBase names a commit of the base branch whose configuration
// protects less than that of the newest: the newest counts.
func TestBundleOnAnOlderBase(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	seed := filepath.Join(b.publishing.dir, "seed")
	b.write("seed/.github/agent-ci.yml", "version: 1\npolicy: {protect: [greet.sh]}\n")
	b.git(seed, "add", "--all")
	b.git(seed, "commit", "--quiet", "--message=protect")
	b.git(seed, "push", "--quiet", b.repo.Dir, "main")
	if out := b.publish(); !strings.HasPrefix(out, "policy_violation/change: ") {
		t.Errorf("the bundle ended in %s", out)
	}
}
