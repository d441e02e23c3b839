package runner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/picture"
)

// Every request carries the images of the task again.
const (
	mostImages     = 8
	mostImageBytes = 16 << 20 // of all that are sent
	imagesTime     = time.Minute
)

// taskImages are the images that belong to the task: those that the job names,
// and those that stand in what people wrote on GitHub. What cannot be had is a
// warning and a word to the model, never the end of a run.
func (r *run) taskImages(ctx context.Context) (images []agent.Image, missing []string) {
	if r.replayed() != nil || r.history != nil && r.history.worked() {
		return nil, nil // nobody looks at them, or they are in the conversation already
	}
	addresses := append([]string(nil), r.job.Task.Images...)
	if r.task.source != "prompt" && r.task.source != "job" && r.job.Task.Attachments == "images" {
		addresses = append(addresses, clean.Images(r.task.text)...)
	}
	left := max(len(addresses)-mostImages, 0)
	addresses = addresses[:len(addresses)-left]
	sent := 0
	for i, got := range r.fetchImages(ctx, addresses) {
		image, err := r.fitImage(got, len(images)+1)
		if err == nil && sent+len(image.Data) > mostImageBytes {
			err = fmt.Errorf("the images before it have %d MiB already, the most that is sent", mostImageBytes>>20)
		}
		if err != nil {
			missing = append(missing, r.missImage(addresses[i], err))
			continue
		}
		sent += len(image.Data)
		images = append(images, image)
	}
	if left > 0 {
		r.rec.Warn("image", "%s of the task are not shown to the agent: at most %d are.", counted(left, "image"), mostImages)
		missing = append(missing, fmt.Sprintf("%s more: at most %d are shown", counted(left, "image"), mostImages))
	}
	return images, missing
}

func (r *run) missImage(address string, why error) string {
	words := r.rec.Redact(fmt.Sprintf("%.300q: %s", address, outcome.Trimmed(why)))
	r.rec.Warn("image", "An image of the task is not shown to the agent: %s.", words)
	return words
}

// fetched is what came of an address.
type fetched struct {
	address string
	data    []byte
	err     error
}

// fetchImages gets the images side by side.
func (r *run) fetchImages(ctx context.Context, addresses []string) []fetched {
	all := make([]fetched, len(addresses))
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	get := r.imageSource()
	var work sync.WaitGroup
	for i, address := range addresses {
		all[i] = fetched{address: address}
		work.Go(func() { all[i].data, all[i].err = get(ctx, address) })
	}
	work.Wait()
	return all
}

// imageSource gets an image by the job's name for it or its address.
func (r *run) imageSource() func(ctx context.Context, address string) ([]byte, error) {
	var files sync.Mutex // the checkout is read by one at a time
	named := map[string]bool{}
	for _, name := range r.job.Task.Images {
		named[name] = !strings.HasPrefix(name, "https://")
	}
	return func(ctx context.Context, address string) ([]byte, error) {
		if !named[address] {
			return r.repo.Attachment(ctx, address)
		}
		files.Lock()
		defer files.Unlock()
		return r.readImage(ctx, address)
	}
}

// readImage reads a file of task.images, which stands beside the job file.
func (r *run) readImage(ctx context.Context, name string) ([]byte, error) {
	file, err := r.source.ReadFile(ctx, r.baseCommit(), r.set.BesideJob(name), forge.MaxAttachment)
	var stop *outcome.Stop
	switch {
	case errors.As(err, &stop):
		return nil, errors.New(strings.TrimSuffix(stop.Message, "."))
	case err != nil:
		return nil, err
	case len(file.Content) > forge.MaxAttachment:
		return nil, fmt.Errorf("it has more than %d MiB", forge.MaxAttachment>>20)
	}
	return file.Content, nil
}

// fitImage makes of what came an image that the model takes, whatever it was
// called, and keeps it where the agent can look at it again.
func (r *run) fitImage(got fetched, number int) (agent.Image, error) {
	if got.err != nil {
		return agent.Image{}, got.err
	}
	p, err := picture.Fit(got.data)
	if err != nil {
		return agent.Image{}, err
	}
	kept := path.Join(record.OutputsFolder, fmt.Sprintf("image-%d.%s", number, strings.TrimPrefix(p.MediaType, "image/")))
	if err := r.rec.Write(kept, p.Data); err != nil {
		return agent.Image{}, err
	}
	name := r.rec.Redact(fmt.Sprintf("%.300q, %d×%d, kept as %s", got.address, p.Width, p.Height, r.rec.Join(kept)))
	return agent.Image{Name: name, Image: tools.Image{MediaType: p.MediaType, Data: p.Data}}, nil
}
