package judge

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestFindsSecretsInPatch(t *testing.T) {
	shape := "ghp_" + strings.Repeat("a1B2c3", 6)
	for name, c := range map[string]struct {
		patch string
		want  string
	}{
		"none":                             {"+x\n-y\n z\n", ""},
		"a value that is added":            {"+key = " + token + "\n", "secret"},
		"a value that stays":               {"+x\n key = " + token + "\n", ""},
		"a value that goes":                {"-key = " + token + "\n", ""},
		"a value that was there and moves": {"-key = " + token + "\n+key = " + token + "\n", "secret"},
		"a shape that was there and moves": {"-key = " + shape + "\n+other = " + shape + "\n", ""},
		"a shape that is new":              {"+key = " + shape + "\n", "secret"},
		"in the name of a file":            {"diff --git a/" + token + " b/" + token + "\n", "secret"},
		"in a last line without its end":   {"+" + token, "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Same(t, c.want, outcometest.Reason(caseOf(t, job.Job{}, &gitops.ChangeSet{}, c.patch).Judge(t.Context())))
		})
	}
}

// blob is a content that must be closed.
type blob struct {
	io.Reader
	open *int
}

func (b blob) Close() error {
	*b.open--
	return nil
}

func TestFindsSecretsInBinaryFiles(t *testing.T) {
	var wide strings.Builder
	for _, unit := range utf16.Encode([]rune("x" + token)) {
		fmt.Fprintf(&wide, "%c%c", byte(unit), byte(unit>>8))
	}
	shape := "ghp_" + strings.Repeat("a1B2c3", 6)
	contents := map[string]string{"plain": "\x00" + token, "wide": wide.String(), "harmless": "\x00\x01", "shape": "\x00" + shape, "moved": shape + "\x00\x00"}
	for name, c := range map[string]struct {
		file changeset.File
		want string
	}{
		"a new one":               {changeset.File{NewMode: "100644", NewID: "plain"}, "secret"},
		"in UTF-16":               {changeset.File{NewMode: "100644", NewID: "wide"}, "secret"},
		"without one":             {changeset.File{NewMode: "100644", NewID: "harmless"}, ""},
		"that is deleted":         {changeset.File{OldMode: "100644", OldID: "plain"}, ""},
		"that had the shape":      {changeset.File{OldMode: "100755", OldID: "moved", NewMode: "100644", NewID: "shape"}, ""},
		"that had no such shape":  {changeset.File{OldMode: "100644", OldID: "harmless", NewMode: "100644", NewID: "shape"}, "secret"},
		"of a submodule":          {changeset.File{NewMode: "160000", NewID: "plain"}, ""},
		"in a submodule's place":  {changeset.File{OldMode: "160000", OldID: "gone", NewMode: "100644", NewID: "shape"}, "secret"},
		"that is not there":       {changeset.File{NewMode: "100644", NewID: "gone"}, `search "f": no gone`},
		"whose old content is no": {changeset.File{OldMode: "100644", OldID: "gone", NewMode: "100644", NewID: "harmless"}, `search "f": no gone`},
	} {
		t.Run(name, func(t *testing.T) {
			c.file.Path, c.file.Binary = "f", true
			judged, contents := caseOf(t, job.Job{}, &gitops.ChangeSet{Files: []changeset.File{c.file}}, ""), &store{blobs: contents}
			judged.Checkout = contents
			judged.Job.Policy.Change.Submodules = "allow"
			must.Same(t, c.want, outcometest.Reason(judged.Judge(t.Context())))
			must.Same(t, 0, contents.open, "are open")
		})
	}
}

// The content of a Git LFS file is published with its pointer.
func TestFindsSecretsInLFSFiles(t *testing.T) {
	shape := "ghp_" + strings.Repeat("a1B2c3", 6)
	contents := map[string]string{"plain": token, "shape": shape, "moved": "x" + "\n" + shape, "harmless": "x"}
	for name, c := range map[string]struct {
		file  changeset.File
		limit int64
		want  string
	}{
		"a new one":              {changeset.File{NewMode: "100644", NewID: "plain"}, 0, "secret"},
		"without one":            {changeset.File{NewMode: "100644", NewID: "harmless"}, 0, ""},
		"that is deleted":        {changeset.File{OldMode: "100644", OldID: "plain"}, 0, ""},
		"that had the shape":     {changeset.File{OldMode: "100644", OldID: "moved", NewMode: "100644", NewID: "shape"}, 0, ""},
		"that had no such shape": {changeset.File{OldMode: "100644", OldID: "harmless", NewMode: "100644", NewID: "shape"}, 0, "secret"},
		"that was no pointer":    {changeset.File{OldMode: "100644", OldID: "other", NewMode: "100644", NewID: "shape"}, 0, "secret"},
		"that is none":           {changeset.File{NewMode: "100644", NewID: "other"}, 0, ""},
		"that is too large":      {changeset.File{NewMode: "100644", NewID: "plain"}, 13, "file_size"},
	} {
		t.Run(name, func(t *testing.T) {
			c.file.Path = "f"
			judged, contents := caseOf(t, job.Job{Limits: job.Limits{FileSize: c.limit}}, &gitops.ChangeSet{Files: []changeset.File{c.file}}, ""), &store{lfs: contents}
			judged.Checkout = contents
			must.Same(t, c.want, outcometest.Reason(judged.Judge(t.Context())))
			must.Same(t, 0, contents.open, "are open")
		})
	}
}

func TestSearchEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, caseOf(t, job.Job{}, &gitops.ChangeSet{}, "+x").Judge(ctx))
}
