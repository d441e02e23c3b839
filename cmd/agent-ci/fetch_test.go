package main_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// artifactCommands are about what workflows upload.
var artifactCommands = map[string]func(*testscript.TestScript, bool, []string){
	"artifact": usage("RUN NAME DIR [expired]", addArtifact),
}

// addArtifact uploads a folder as a run of a workflow does: artifact RUN NAME DIR
// [expired]. It prints the id.
func addArtifact(ts *testscript.TestScript, args []string) {
	packed, err := zipped(ts.MkAbs(args[2]))
	ts.Check(err)
	id := worldOf(ts).repo.AddArtifact(int64(integer(ts, args[0])), forgetest.Artifact{Name: args[1], Zip: packed, Expired: len(args) > 3})
	fmt.Fprintf(ts.Stdout(), "%d\n", id)
}

func zipped(dir string) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := w.AddFS(os.DirFS(dir))
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}
