package tools

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/tools/picture"
)

// maxImages is the maximum number of images decoded for one result, because decoding takes time and memory.
const maxImages = 8

// Images collects the images of a result.
type Images struct {
	Added    []Image
	attempts int
	details  []map[string]any
}

// Add converts an image file to a form for models and adds it. It returns a description of the image. The error says
// why the image cannot be used.
func (s *Images) Add(ctx context.Context, file []byte) (description string, err error) {
	switch {
	case s.attempts == maxImages:
		return "", fmt.Errorf("there are more than %d", maxImages)
	case ctx.Err() != nil:
		return "", errors.New("the time of the call is over")
	}
	s.attempts++
	p, err := picture.Fit(file)
	if err != nil {
		return "", err
	}
	s.Added = append(s.Added, Image{MediaType: p.MediaType, Data: p.Data})
	description, details := DescribeImage(p)
	s.details = append(s.details, details)
	return description, nil
}

// DescribeImage returns a description of an image for the model, and its details for the transcript.
func DescribeImage(p picture.Picture) (description string, details map[string]any) {
	description = fmt.Sprintf("%d×%d, %s, %d bytes", p.Width, p.Height, strings.TrimPrefix(p.MediaType, "image/"), len(p.Data))
	return description, map[string]any{"media_type": p.MediaType, "width": p.Width, "height": p.Height, "bytes": len(p.Data), "sha256": fmt.Sprintf("%x", sha256.Sum256(p.Data))}
}

// AddURL adds the image in a data URL. It returns a description of the image. The error says why it cannot be used.
func (s *Images) AddURL(ctx context.Context, url string) (description string, err error) {
	head, data, found := strings.Cut(url, ",")
	if !found || !strings.HasPrefix(head, "data:image/") || !strings.HasSuffix(head, ";base64") {
		return "", errors.New("image_url has to be a data URL with base64, data:image/png;base64,…")
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fmt.Errorf("its base64 is broken: %w", err)
	}
	return s.Add(ctx, raw)
}

// URL returns the image as a data URL.
func (i Image) URL() string {
	return "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// Detail returns the images' details for the transcript, or nil if there are no images.
func (s *Images) Detail() map[string]any {
	if len(s.details) == 0 {
		return nil
	}
	return map[string]any{"images": s.details}
}
