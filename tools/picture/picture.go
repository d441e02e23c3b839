// Package picture converts image files for models. The results are valid, in a format that models' APIs accept, and not
// larger than useful. The package opens no files.
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif" // image.Decode reads it
	"image/jpeg"
	"image/png"
)

const (
	// longSide and shortSide are the size to which the API reduces larger images. Sending more would be a waste.
	longSide  = 2048
	shortSide = 768
	// maxDecoded is the maximum size of a decoded image in memory, in bytes.
	maxDecoded = 128 << 20
	// maxEncoded is the maximum size of a sent image, in bytes.
	maxEncoded = 4 << 20
	// quality is the quality of written JPEGs, of 100.
	quality = 85
)

// Picture is an image file for models.
type Picture struct {
	MediaType     string
	Data          []byte
	Width, Height int
	Original      image.Point // size of the original image
}

// The errors for files that are not broken, but cannot be converted.
var (
	ErrUnknown  = errors.New("it is not a PNG, JPEG or GIF image")
	ErrWebP     = errors.New("WebP images can't be decoded here; convert it to PNG with a command and view that")
	ErrTooLarge = fmt.Errorf("its pixels take more than %d MiB; make it smaller with a command and view that", maxDecoded>>20)
)

// pngMagic is how a PNG file begins.
const pngMagic = "\x89PNG\r\n\x1a\n"

// Fit converts an image file for models. It reduces a large image, and an animation to its first frame. It decodes the
// complete file, to find errors before the API does. The error belongs to this package, or describes the damage.
func Fit(data []byte) (Picture, error) {
	data = withoutBrokenChunks(data)
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case errors.Is(err, image.ErrFormat) && isWebP(data):
		return Picture{}, ErrWebP
	case errors.Is(err, image.ErrFormat):
		return Picture{}, ErrUnknown
	case err != nil:
		return Picture{}, err
	case int64(config.Width)*int64(config.Height)*pixelBytes(config.ColorModel) > maxDecoded:
		return Picture{}, ErrTooLarge
	}
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return Picture{}, err
	}
	original := decoded.Bounds().Size()
	size := fittingSize(original)
	p := Picture{MediaType: "image/" + format, Data: data, Width: size.X, Height: size.Y, Original: original}
	mayBeAnimation := format == "gif" // which the API refuses
	if size == original && !mayBeAnimation && len(data) <= maxEncoded {
		return p, nil
	}
	if size != original {
		decoded = shrink(decoded, size)
	}
	p.MediaType, p.Data, err = encode(decoded, p.MediaType)
	return p, err
}

// isWebP reports whether a file begins as a WebP image does.
func isWebP(data []byte) bool {
	return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
}

// withoutBrokenChunks returns a PNG file without its ancillary chunks that have a wrong checksum. Decoders would refuse
// the file, although the picture is intact. It returns other files unchanged.
func withoutBrokenChunks(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte(pngMagic)) {
		return data
	}
	const overhead = 12       // bytes of a chunk's length, name and checksum
	const ancillaryBit = 0x20 // in the first byte of a chunk's name
	offset := len(pngMagic)
	repaired := append([]byte(nil), data[:offset]...)
	for len(data)-offset >= overhead {
		size := int64(binary.BigEndian.Uint32(data[offset:]))
		if size > int64(len(data)-offset-overhead) {
			break
		}
		chunk := data[offset : offset+overhead+int(size)]
		body, sum := chunk[4:len(chunk)-4], binary.BigEndian.Uint32(chunk[len(chunk)-4:])
		isAncillary := body[0]&ancillaryBit != 0
		if !isAncillary || crc32.ChecksumIEEE(body) == sum {
			repaired = append(repaired, chunk...)
		}
		offset += len(chunk)
	}
	return append(repaired, data[offset:]...)
}

// pixelBytes returns the number of bytes of memory that a decoded pixel takes at most.
func pixelBytes(model color.Model) int64 {
	switch model {
	case color.RGBA64Model, color.NRGBA64Model, color.Gray16Model, color.Alpha16Model:
		return 8
	}
	return 4
}

// fittingSize returns size, reduced to fit longSide and shortSide with the same proportions.
func fittingSize(size image.Point) image.Point {
	long, short := max(size.X, size.Y), min(size.X, size.Y)
	factor := min(1, float64(longSide)/float64(max(long, 1)), float64(shortSide)/float64(max(short, 1)))
	scaled := func(n int) int { return max(int(float64(n)*factor+0.5), 1) }
	return image.Pt(scaled(size.X), scaled(size.Y))
}

// encode encodes an image as PNG. If the original is a JPEG, or if the PNG exceeds maxEncoded, it encodes the image as
// JPEG instead.
func encode(m image.Image, originalType string) (mediaType string, data []byte, err error) {
	var buffer bytes.Buffer
	if originalType != "image/jpeg" {
		if err := png.Encode(&buffer, m); err != nil {
			return "", nil, fmt.Errorf("encode PNG: %w", err)
		}
		if buffer.Len() <= maxEncoded {
			return "image/png", buffer.Bytes(), nil
		}
		buffer.Reset()
	}
	if err := jpeg.Encode(&buffer, onWhite(m), &jpeg.Options{Quality: quality}); err != nil {
		return "", nil, fmt.Errorf("encode JPEG: %w", err)
	}
	return "image/jpeg", buffer.Bytes(), nil
}

// onWhite returns an image on a white background, because JPEG has no transparency.
func onWhite(m image.Image) image.Image {
	if opaque, canTell := m.(interface{ Opaque() bool }); canTell && opaque.Opaque() {
		return m
	}
	whole := image.NewRGBA(m.Bounds())
	draw.Draw(whole, whole.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(whole, whole.Bounds(), m, m.Bounds().Min, draw.Over)
	return whole
}
