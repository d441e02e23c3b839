package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// ReadRecorded reads the JSON file called name into value. sha256Sum is the file's digest in the transcript.
// content says what the file holds, for the errors: a missing file, an altered one, and invalid JSON.
func (d *Directory) ReadRecorded(name, sha256Sum, content string, value any) error {
	raw, err := d.Read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the run directory has no %s, with %s", name, content)
	case err != nil:
		return fmt.Errorf("read %s, with %s: %w", name, content, err)
	case DigestOf(raw) != sha256Sum:
		return fmt.Errorf("%s, with %s, was changed since it was recorded", name, content)
	}
	if err := plainjson.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("read %s, with %s: %w", name, content, err)
	}
	return nil
}

// WriteRecorded writes a value as WriteJSON does. It returns the digest for the transcript.
func (d *Directory) WriteRecorded(name string, value any) (sha256Sum string, err error) {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	raw = append(raw, '\n')
	return DigestOf(raw), d.Write(name, raw)
}

// DigestOf returns the SHA-256 of raw, in hex.
func DigestOf(raw []byte) string {
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:])
}
