package layer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestClaimRefusesHeldOverlay(t *testing.T) {
	folder := t.TempDir()
	must.Is(t, nil, AwaitUnmounted(t.Context(), folder), "nobody had it")
	must.Do(t, ClaimOverlay(t.Context(), folder, os.Getpid(), 0))
	if held := (*MountedError)(nil); !errors.As(ClaimOverlay(t.Context(), folder, 1, 1), &held) || held.PID != os.Getpid() {
		t.Errorf("it is held by %+v", held)
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, holderFile), mountOwner{1 << 30, "gone"}.line(), 0o600))
	must.Do(t, AddBorrower(folder, os.Getpid()))
	if held := (*MountedError)(nil); !errors.As(ClaimOverlay(t.Context(), folder, 1, 1), &held) || held.PID != os.Getpid() {
		t.Errorf("it is held by %+v after the one who lent it is gone", held)
	}
	mine := ownerWithPID(os.Getpid())
	mine.started += "0" // of a process that had the number before
	must.Is(t, nil, mine.awaitExit(t.Context(), 0), "one whose number is another's")
}
