package gitops_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// The contents of each base replace the pointers, and the work tree stays clean.
func TestFillLFS(t *testing.T) {
	r := newRepo(t)
	contents := map[string]string{}
	point := func(path, content string) (pointer string) {
		sum := sha256.Sum256([]byte(content))
		oid := hex.EncodeToString(sum[:])
		contents[oid] = content
		pointer = fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content))
		r.Write(path, pointer)
		return pointer
	}
	r.Write(".gitattributes", "*.bin filter=lfs -text\n")
	plain := point("pointer.txt", "of no Git LFS file\n")
	same := point("same.bin", "same\n")
	huge := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize %d\n", 1, int64(1)<<40)
	r.Write("huge.bin", huge)
	point("a.bin", "first\n")
	r.Seed()
	first := r.Git("rev-parse", "HEAD")
	point("a.bin", "second\n")
	r.Git("commit", "-qam", "second")
	second := r.Git("rev-parse", "HEAD")
	for option, command := range map[string]string{"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process", "required": "true"} {
		r.Git("config", "filter.lfs."+option, command)
	}
	files := func() map[string]string {
		have := map[string]string{}
		for _, name := range []string{"a.bin", "same.bin", "huge.bin", "pointer.txt"} {
			text := must.Get(os.ReadFile(r.Path(name)))(t)
			have[name] = string(text)
		}
		return have
	}
	c := r.open()
	fill := func(gives map[string]string) (asked int, err error) {
		err = c.FillLFS(t.Context(), func(_ context.Context, _, folder string, list []gitops.LFSFile) error {
			asked = len(list)
			for _, f := range list {
				content, known := gives[f.OID]
				if !known {
					continue
				}
				file := filepath.Join(folder, "objects", f.OID[:2], f.OID[2:4], f.OID)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
					return err
				}
			}
			return errors.New("no more")
		})
		return asked, err
	}

	var missing *gitops.MissingLFSError
	if _, err := fill(nil); !errors.As(err, &missing) || missing.Path != "a.bin" || missing.Others != 2 {
		t.Errorf("none is given: %v", err)
	}
	for _, step := range []struct {
		base  string
		asked int
	}{{second, 2}, {first, 1}, {second, 0}} {
		must.Get(c.SetBase(gitops.BaseSpec{SHA: step.base}))(t)
		asked, err := fill(contents)
		if !errors.As(err, &missing) || missing.Path != "huge.bin" || missing.Others != 0 || asked != step.asked {
			t.Errorf("asked for %d: %v", asked, err)
		}
		must.Same(t, map[string]string{"a.bin": "second\n", "same.bin": "same\n", "huge.bin": huge, "pointer.txt": plain}, files(), "files")
		must.None(t, must.Get(c.Snapshot(t.Context()))(t).Dirty(), "dirty")
		if moved, err := c.MovedByOthers(t.Context()); err != nil || moved {
			t.Errorf("moved: %t, %v", moved, err)
		}
	}

	// Without smudging nothing is fetched or written.
	r.Write("same.bin", same)
	r.Git("config", "filter.lfs.process", "git-lfs filter-process --skip")
	c = r.open()
	if asked, err := fill(contents); err != nil || asked != 0 || files()["same.bin"] != same {
		t.Errorf("skipped: asked for %d, %v, %q", asked, err, files()["same.bin"])
	}
}
