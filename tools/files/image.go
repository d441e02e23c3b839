package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/picture"
)

// maxImage is the maximum size of an image file, in bytes.
const maxImage = 20 << 20

var imageSpec = tools.Spec{
	Name:        "view_image",
	Description: "Shows a PNG, JPEG or GIF image from a file. A large one is made smaller; of an animation the first frame is shown.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Path of the image file, relative to the working directory or absolute."}` +
		`},"required":["path"],"additionalProperties":false}`),
	// The reference implementation's later versions have detail too.
	Accepts: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"detail":{"type":"string"}},"required":["path"],"additionalProperties":false}`),
	Returns: json.RawMessage(`{"type":"object","properties":{"image_url":{"type":"string","description":"A data URL."}},"required":["image_url"],"additionalProperties":false}`),
}

// viewImage is the tool view_image. Decoded images are large, so decodeSlot lets only one call decode at a time.
type viewImage struct {
	Options
	decodeSlot chan struct{}
}

// view runs view_image.
func (v viewImage) view(ctx context.Context, a struct{ Path string }) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, ctx.Err()
	}
	select {
	case v.decodeSlot <- struct{}{}:
		defer func() { <-v.decodeSlot }()
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
	data, err := v.read(a.Path)
	if err != nil {
		return tools.Result{}, err
	}
	p, err := picture.Fit(data)
	switch {
	case errors.Is(err, picture.ErrUnknown), errors.Is(err, picture.ErrWebP), errors.Is(err, picture.ErrTooLarge):
		return tools.Result{}, refusal(fmt.Sprintf("%s can't be shown: %v", a.Path, err))
	case err != nil:
		return tools.Result{}, refusal(fmt.Sprintf("%s can't be shown: the image is broken: %v", a.Path, err))
	}
	result := imageResult(a.Path, p)
	if call, _ := tools.CallOf(ctx); call.Caller > 0 { // a script, which gets a value instead of an image
		result.Object = map[string]any{"image_url": result.Images[0].URL()}
	}
	return result, nil
}

// read returns the content of an image file, or a refusal if it is empty or too large.
func (v viewImage) read(path string) ([]byte, error) {
	file, err := v.open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxImage+1))
	switch {
	case err != nil:
		return nil, refuseRead(path, err.Error())
	case len(data) == 0:
		return nil, refusal(path + " is empty")
	case len(data) > maxImage:
		return nil, refusal(fmt.Sprintf("%s has more than %d MiB; make it smaller with a command and view that", path, maxImage>>20))
	}
	return data, nil
}

// imageResult returns a result with the image and a line that describes it. The transcript gets only the image's details,
// such as its digest.
func imageResult(path string, p picture.Picture) tools.Result {
	description, details := tools.DescribeImage(p)
	line := oneLine(path) + ": " + description
	if p.Original.X != p.Width || p.Original.Y != p.Height {
		line += fmt.Sprintf(" (made smaller; the file has %d×%d)", p.Original.X, p.Original.Y)
	}
	return tools.Result{Output: line, Images: []tools.Image{{MediaType: p.MediaType, Data: p.Data}}, Detail: details}
}
