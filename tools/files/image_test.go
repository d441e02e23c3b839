package files_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func TestViewImage(t *testing.T) {
	p := newPlace(t)
	small := string(toolstest.PNG(t, 20, 10))
	toolstest.Write(t, p.dir, map[string]string{"sub/logo.png": small, "large.png": string(toolstest.PNG(t, 4096, 100))})
	got := p.call(t, "view_image", map[string]any{"path": "sub/logo.png", "detail": "high"})
	want := fmt.Sprintf("sub/logo.png: 20×10, png, %d bytes", len(small))
	if got.Failed || got.Output != want || len(got.Images) != 1 || got.Images[0].MediaType != "image/png" || string(got.Images[0].Data) != small {
		t.Errorf("got %+v", got)
	}
	if got.Detail["sha256"] != fmt.Sprintf("%x", sha256.Sum256([]byte(small))) || got.Detail["width"] != 20 {
		t.Errorf("got %v", got.Detail)
	}
	got = p.call(t, "view_image", map[string]any{"file_path": "large.png"})
	if got.Failed || !strings.Contains(got.Output, ": 2048×50, png, ") || !strings.HasSuffix(got.Output, " (made smaller; the file has 4096×100)") {
		t.Errorf("got %s", got.Output)
	}
}

func TestViewImageRefuses(t *testing.T) {
	p, small := newPlace(t), string(toolstest.PNG(t, 9, 9))
	p.files(t, map[string]string{
		"text.png": "text", "broken.png": small[:40], "empty.png": "", "x.webp": "RIFF\x00\x00\x00\x00WEBPVP8 ",
		"just.png":   small + strings.Repeat("\x00", 20<<20-len(small)),
		"heavy.png":  small + strings.Repeat("\x00", 20<<20+1-len(small)),
		".git/a.png": small,
	})
	beside := t.TempDir()
	outside := filepath.Join(beside, "a.png")
	toolstest.Write(t, beside, map[string]string{"a.png": small})
	toolstest.Link(t, p.dir, map[string]string{"out.png": outside})
	for path, want := range map[string]string{
		"missing.png": "there is no file missing.png", ".": ". is a directory", "": "the path is empty",
		"text.png": "it is not a PNG, JPEG or GIF image", "broken.png": "the image is broken", "empty.png": "empty.png is empty",
		"x.webp": "WebP images can't be decoded here; convert it to PNG", "heavy.png": "heavy.png has more than 20 MiB",
		".git/a.png": "is in git's own directory", "out.png": "is a link that leads out", outside: "is outside the working directory",
	} {
		if got := p.call(t, "view_image", map[string]any{"path": path}); !got.Failed || !strings.Contains(got.Output, want) || len(got.Images) > 0 {
			t.Errorf("%s: got %s, %d images", path, got.Output, len(got.Images))
		}
	}
	if got := p.call(t, "view_image", map[string]any{"path": "just.png"}); got.Failed {
		t.Errorf("the largest file that is read: %s", got.Output)
	}
}
