package picture

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func pngOf(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m))
	return b.Bytes()
}

func jpegOf(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, jpeg.Encode(&b, m, nil))
	return b.Bytes()
}

func gifOf(t *testing.T, frames ...*image.Paletted) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, gif.EncodeAll(&b, &gif.GIF{Image: frames, Delay: make([]int, len(frames))}))
	return b.Bytes()
}

// checks is an image of black and white squares of a size.
func checks(w, h, square int) *image.Gray {
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		if (i%w/square+i/w/square)%2 == 0 {
			m.Pix[i] = 255
		}
	}
	return m
}

func noise(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(random.Uint32())
	}
	return m
}

func TestFit(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 4, 2), color.Palette{color.Black, color.White})
	for _, test := range []struct {
		name      string
		data      []byte
		mediaType string
		w, h      int
		same      bool // sent as it is
	}{
		{"small PNG", pngOf(t, checks(10, 20, 2)), "image/png", 10, 20, true},
		{"small JPEG", jpegOf(t, checks(10, 20, 2)), "image/jpeg", 10, 20, true},
		{"one pixel", pngOf(t, checks(1, 1, 1)), "image/png", 1, 1, true},
		{"GIF", gifOf(t, frame), "image/png", 4, 2, false},
		{"animation", gifOf(t, frame, frame), "image/png", 4, 2, false},
		{"just within the limits", pngOf(t, checks(2048, 768, 16)), "image/png", 2048, 768, true},
		{"upright", pngOf(t, checks(768, 2048, 16)), "image/png", 768, 2048, true},
		{"a pixel too wide", pngOf(t, checks(2049, 100, 16)), "image/png", 2048, 100, false},
		{"a pixel too high", pngOf(t, checks(900, 769, 16)), "image/png", 899, 768, false},
		{"a large JPEG", jpegOf(t, checks(4000, 3000, 16)), "image/jpeg", 1024, 768, false},
		{"very long", pngOf(t, checks(20_000, 2, 1)), "image/png", 2048, 1, false},
		{"too many bytes", pngOf(t, noise(2000, 768)), "image/jpeg", 2000, 768, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := must.Get(Fit(test.data))(t)
			if got.MediaType != test.mediaType || got.Width != test.w || got.Height != test.h || bytes.Equal(got.Data, test.data) != test.same {
				t.Errorf("got %s of %d×%d, the same %v", got.MediaType, got.Width, got.Height, bytes.Equal(got.Data, test.data))
			}
			if len(got.Data) > maxEncoded {
				t.Errorf("it has %d bytes", len(got.Data))
			}
			config, kind, err := image.DecodeConfig(bytes.NewReader(got.Data))
			if err != nil || "image/"+kind != got.MediaType || config.Width != test.w || config.Height != test.h {
				t.Errorf("it is %s of %d×%d, %v", kind, config.Width, config.Height, err)
			}
		})
	}
}

// A chunk that is not needed may have a wrong checksum: it is left out.
func TestFitDropsBrokenAncillaryChunk(t *testing.T) {
	whole := pngOf(t, checks(10, 20, 2))
	end := len(whole) - 12 // of IEND
	chunk := append([]byte{0, 0, 0, 1}, "tEXtx\x00\x00\x00\x00"...)
	for name, at := range map[string]int{"behind the header": 33, "at the end": end} {
		must.Same(t, whole, must.Get(Fit(slices.Concat(whole[:at], chunk, whole[at:])))(t).Data, name)
	}
}

func TestFitRefuses(t *testing.T) {
	whole := pngOf(t, checks(100, 100, 3))
	broken := bytes.Clone(whole)
	broken[len(broken)/2] ^= 0xff
	huge := bytes.Clone(whole)
	copy(huge[16:24], []byte{0, 1, 0, 0, 0, 1, 0, 0})
	for _, test := range []struct {
		name string
		data []byte
		want error // nil means any
	}{
		{"nothing", nil, ErrUnknown},
		{"text", []byte("<svg/>"), ErrUnknown},
		{"WebP", []byte("RIFF\x00\x00\x00\x00WEBPVP8 "), ErrWebP},
		{"cut off", whole[:len(whole)-20], nil},
		{"broken", broken, nil},
		{"only its beginning", whole[:8], nil},
		{"JPEG cut off", jpegOf(t, checks(100, 100, 3))[:300], nil},
		{"GIF cut off", []byte("GIF89a"), nil},
		{"a bomb", huge, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := Fit(test.data); err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, %v", got.MediaType, err)
			}
		})
	}
}

// TestFitBoundsPixelBytes is about the size that a header states; nothing is decoded.
func TestFitBoundsPixelBytes(t *testing.T) {
	for _, test := range []struct {
		model color.Model
		want  int64
	}{{color.NRGBAModel, 4}, {color.GrayModel, 4}, {color.NRGBA64Model, 8}, {color.Palette{color.Black}, 4}} {
		must.Same(t, test.want, pixelBytes(test.model))
	}
	over := image.NewGray(image.Rect(0, 0, 8192, 4097)) // 4 bytes each: one line too many
	must.Is(t, ErrTooLarge, must.Err(Fit(pngOf(t, over))))
}

func TestShrinkAveragesPixels(t *testing.T) {
	from := image.NewNRGBA(image.Rect(3, 5, 3+4, 5+4))
	for y := range 4 {
		for x := range 4 {
			c := color.NRGBA{R: 200, A: 255}
			if x >= 2 {
				c = color.NRGBA{B: 100, A: 255}
			}
			from.SetNRGBA(3+x, 5+y, c)
		}
	}
	got := shrink(from, image.Pt(2, 2))
	for y := range 2 {
		if left, right := got.RGBAAt(0, y), got.RGBAAt(1, y); left != (color.RGBA{R: 200, A: 255}) || right != (color.RGBA{B: 100, A: 255}) {
			t.Errorf("line %d: got %v and %v", y, left, right)
		}
	}
	if got := shrink(checks(300, 300, 1), image.Pt(100, 100)).RGBAAt(50, 50); got.R < 110 || got.R > 145 || got.A != 255 {
		t.Errorf("the mean of squares: got %v", got)
	}
	white := image.NewRGBA(image.Rect(0, 0, 300, 300))
	draw.Draw(white, white.Bounds(), image.White, image.Point{}, draw.Src)
	for _, size := range []image.Point{{1, 1}, {7, 3}, {299, 300}} {
		for i, c := range shrink(white, size).Pix {
			if c != 255 {
				t.Fatalf("white made %v has %d at %d", size, c, i)
			}
		}
	}
}

func FuzzFit(f *testing.F) {
	var b bytes.Buffer
	must.Do(f, png.Encode(&b, checks(3, 3, 1)))
	f.Add(b.Bytes())
	f.Add([]byte("GIF89a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Fit(data)
		if err != nil {
			return
		}
		if _, _, err := image.Decode(bytes.NewReader(got.Data)); err != nil {
			t.Errorf("what is sent can't be decoded: %v", err)
		}
	})
}
