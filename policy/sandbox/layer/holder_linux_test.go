package layer

import (
	"errors"
	"os"
	"testing"
)

func TestWhoHasAnOverlay(t *testing.T) {
	folder := t.TempDir()
	if err := Await(t.Context(), folder); err != nil {
		t.Errorf("nobody had it: %v", err)
	}
	if err := Hold(t.Context(), folder, os.Getpid(), 0); err != nil {
		t.Fatal(err)
	}
	if held := (*HeldError)(nil); !errors.As(Hold(t.Context(), folder, 1, 1), &held) || held.PID != os.Getpid() {
		t.Errorf("it is held by %+v", held)
	}
	mine := holderOf(os.Getpid())
	mine.begun += "0" // of a process that had the number before
	if err := mine.await(t.Context(), 0); err != nil {
		t.Errorf("one whose number is another's: %v", err)
	}
}
