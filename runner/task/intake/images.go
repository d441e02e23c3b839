package intake

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/picture"
)

// Every request carries the images of the task again.
const (
	maxImages     = 8
	maxImageBytes = 16 << 20 // of all that are sent
	imagesTimeout = time.Minute
)

// FetchImages returns the images named by the job, and the images in the task's text if that comes from the forge
// and the job allows them. It returns up to maxImages images. missing describes the others and those that could
// not be used, for the model. They cause a warning, never the end of a run.
func (s *Source) FetchImages(ctx context.Context, t Task) (images []tools.NamedImage, missing []string) {
	addresses := slices.Clone(s.Job.Task.Images)
	if t.Source != "prompt" && t.Source != "job" && s.Job.Task.Attachments == "images" {
		addresses = append(addresses, clean.ImageAddresses(t.Text)...)
	}
	omitted := max(len(addresses)-maxImages, 0)
	addresses = addresses[:len(addresses)-omitted]
	sentBytes := 0
	for i, fetched := range s.fetchAll(ctx, addresses) {
		image, err := s.convertImage(fetched, len(images)+1)
		if err == nil && sentBytes+len(image.Data) > maxImageBytes {
			err = fmt.Errorf("the images before it have %d MiB already, the most that is sent", maxImageBytes>>20)
		}
		if err != nil {
			missing = append(missing, s.warnMissingImage(addresses[i], err))
			continue
		}
		sentBytes += len(image.Data)
		images = append(images, image)
	}
	if omitted > 0 {
		s.Record.Warn("image", "%s of the task are not shown to the agent: at most %d are.", transcript.CountNoun(omitted, "image"), maxImages)
		missing = append(missing, fmt.Sprintf("%s more: at most %d are shown", transcript.CountNoun(omitted, "image"), maxImages))
	}
	return images, missing
}

func (s *Source) warnMissingImage(address string, why error) string {
	words := s.Record.Redact(fmt.Sprintf("%.300q: %s", address, outcome.WithoutFullStop(why)))
	s.Record.Warn("image", "An image of the task is not shown to the agent: %s.", words)
	return words
}

// fetchResult is the result of fetching one address.
type fetchResult struct {
	address string
	data    []byte
	err     error
}

// fetchAll fetches images concurrently, within imagesTimeout. Results and addresses have the same order.
func (s *Source) fetchAll(ctx context.Context, addresses []string) []fetchResult {
	ctx, cancel := context.WithTimeout(ctx, imagesTimeout)
	defer cancel()
	all := make([]fetchResult, len(addresses))
	var files sync.Mutex // the checkout is read by one at a time
	var work sync.WaitGroup
	for i, address := range addresses {
		all[i] = fetchResult{address: address}
		work.Go(func() { all[i].data, all[i].err = s.fetchImage(ctx, address, &files) })
	}
	work.Wait()
	return all
}

// fetchImage fetches an image from the forge, or a file that the job names. files serialises reads of files.
func (s *Source) fetchImage(ctx context.Context, address string, files *sync.Mutex) ([]byte, error) {
	if strings.HasPrefix(address, "https://") || !slices.Contains(s.Job.Task.Images, address) {
		return s.Target.Attachment(ctx, address)
	}
	files.Lock()
	defer files.Unlock()
	data, err := s.ReadBesideJob(ctx, address, forge.MaxAttachment)
	var stop *outcome.Stop
	switch {
	case errors.As(err, &stop):
		return nil, errors.New(strings.TrimSuffix(stop.Message, "."))
	case err != nil:
		return nil, err
	case len(data) > forge.MaxAttachment:
		return nil, fmt.Errorf("it has more than %d MiB", forge.MaxAttachment>>20)
	}
	return data, nil
}

// convertImage converts fetched data, of any name, into an image for the model, and saves the image for the agent.
func (s *Source) convertImage(fetched fetchResult, number int) (tools.NamedImage, error) {
	if fetched.err != nil {
		return tools.NamedImage{}, fetched.err
	}
	p, err := picture.Fit(fetched.data)
	if err != nil {
		return tools.NamedImage{}, err
	}
	file := path.Join(record.OutputsFolder, fmt.Sprintf("image-%d.%s", number, strings.TrimPrefix(p.MediaType, "image/")))
	if err := s.Record.Write(file, p.Data); err != nil {
		return tools.NamedImage{}, err
	}
	name := s.Record.Redact(fmt.Sprintf("%.300q, %d×%d, kept as %s", fetched.address, p.Width, p.Height, s.Record.Join(file)))
	return tools.NamedImage{Name: name, Image: tools.Image{MediaType: p.MediaType, Data: p.Data}}, nil
}
