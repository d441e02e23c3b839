package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/verify"
)

// keptBaselines opens what earlier runs found of bases; nil where the user wants none of
// it, or where commands of the run could write there.
func (in *invocation) keptBaselines(so *reached) *verify.Kept {
	path := record.BaselinesPath(in.env.Get)
	if !in.keepBaselines || path == "" || len(so.job().Verify) == 0 || !so.boxes.OutOfReach(path) {
		return nil
	}
	program, err := programDigest()
	if err != nil {
		in.rec.Warn("baseline_not_kept", "No baseline is kept for later runs: %v.", err)
		return nil
	}
	kept, err := record.OpenBaselines(path)
	if err != nil {
		in.rec.Warn("baseline_not_kept", "No baseline is kept for later runs: %v.", err)
		return nil
	}
	return &verify.Kept{Baselines: kept, RunID: in.rec.ID, Machine: append(so.boxes.Machine(), program)}
}

// programDigest is the SHA-256 of this program.
func programDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
