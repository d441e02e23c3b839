package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
)

// OpenBaselineCache opens the baseline cache at path. It returns nil without checks, or if the
// run's commands could write there. Errors are warnings.
func OpenBaselineCache(rec *record.Record, path string, boxes *confine.Sandboxes) *BaselineCache {
	if path == "" || len(boxes.Job.Verify) == 0 || !boxes.UnwritableByCommands(path) {
		return nil
	}
	var kept *record.Baselines
	program, err := programID()
	if err == nil {
		kept, err = record.OpenBaselines(path)
	}
	if err != nil {
		rec.Warn("baseline_not_kept", "No baseline is kept for later runs: %v.", err)
		return nil
	}
	return &BaselineCache{Baselines: kept, machine: append(boxes.MachineID(), program)}
}

// programID returns Go's build ID, or else the program's digest, which takes as long as a short run.
func programID() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	if id := buildID(f); id != "" {
		return id, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, math.MaxInt64)); err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// buildID returns the build ID of a program, or "". Go writes it near the beginning: into an ELF
// note, or before the code in other formats (cmd/internal/buildid of the Go distribution).
func buildID(program io.ReaderAt) string {
	head := make([]byte, 32<<10)
	n, _ := program.ReadAt(head, 0)
	head = head[:n]
	if _, after, found := bytes.Cut(head, []byte("\xff Go build ID: \"")); found {
		id, _, _ := bytes.Cut(after, []byte("\"\n \xff"))
		return string(id)
	}
	const kind = "\x04\x00\x00\x00Go\x00\x00" // the type and the owner of the note; its length is before them
	at := bytes.Index(head, []byte(kind))
	if at < 4 {
		return ""
	}
	length, id := binary.LittleEndian.Uint32(head[at-4:]), head[at+len(kind):]
	return string(id[:min(int(length), len(id))])
}
