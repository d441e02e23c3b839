package files_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func picture(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestViewImage(t *testing.T) {
	p := newPlace(t)
	small := picture(t, 20, 10)
	write(t, filepath.Join(p.dir, "sub/logo.png"), small)
	got := p.call(t, "view_image", map[string]any{"path": "sub/logo.png", "detail": "high"})
	want := fmt.Sprintf("sub/logo.png: 20×10, png, %d bytes", len(small))
	if got.Failed || got.Output != want || len(got.Images) != 1 || got.Images[0].MediaType != "image/png" || string(got.Images[0].Data) != small {
		t.Errorf("got %+v", got)
	}
	if got.Detail["sha256"] != fmt.Sprintf("%x", sha256.Sum256([]byte(small))) || got.Detail["width"] != 20 {
		t.Errorf("got %v", got.Detail)
	}
}

func TestViewImageMadeSmaller(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "large.png"), picture(t, 4096, 100))
	got := p.call(t, "view_image", map[string]any{"file_path": "large.png"})
	if got.Failed || !strings.Contains(got.Output, ": 2048×50, png, ") || !strings.HasSuffix(got.Output, " (made smaller; the file has 4096×100)") {
		t.Errorf("got %s", got.Output)
	}
}

func TestViewImageRefuses(t *testing.T) {
	p := newPlace(t)
	p.files(t, map[string]string{
		"text.png": "text", "broken.png": picture(t, 9, 9)[:40], "empty.png": "", "x.webp": "RIFF\x00\x00\x00\x00WEBPVP8 ",
		"just.png":   picture(t, 9, 9) + strings.Repeat("\x00", 20<<20-len(picture(t, 9, 9))),
		"heavy.png":  picture(t, 9, 9) + strings.Repeat("\x00", 20<<20+1-len(picture(t, 9, 9))),
		".git/a.png": picture(t, 9, 9),
	})
	outside := filepath.Join(t.TempDir(), "a.png")
	write(t, outside, picture(t, 9, 9))
	if err := os.Symlink(outside, filepath.Join(p.dir, "out.png")); err != nil {
		t.Fatal(err)
	}
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
