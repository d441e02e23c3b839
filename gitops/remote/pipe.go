package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// pipeSession speaks the git protocol with a program of the other side, here
// or behind ssh. Its context ends it: end must be safe to call after that.
type pipeSession struct {
	service string
	in      io.WriteCloser
	out     io.Reader
	end     func() (said string, err error) // waits for the program
	adv     *packp.AdvRefs
	asked   bool
	ended   bool
}

func (s *pipeSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext reads the list of refs, once.
func (s *pipeSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	if s.adv != nil {
		return s.adv, nil
	}
	adv := packp.NewAdvRefs()
	err := adv.Decode(io.LimitReader(s.out, maxAdvertised))
	if err != nil && !errors.Is(err, packp.ErrEmptyAdvRefs) {
		return nil, s.complaint(err)
	}
	if adv.IsEmpty() && s.service == transport.UploadPackServiceName {
		return nil, transport.ErrEmptyRemoteRepository
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	s.adv = adv
	return adv, nil
}

// complaint waits for a program that gave up, for its words on why.
func (s *pipeSession) complaint(err error) error {
	if said, _ := s.finish(); said != "" {
		return complaintError(said)
	}
	return err
}

// complaints are by what git and the usual servers say on standard error.
var complaints = []struct {
	words string
	kind  error
}{
	{"does not appear to be a git repository", ErrNotFound},
	{"repository not found", ErrNotFound},
	{"could not be found", ErrNotFound},
	{"does not exist", ErrNotFound},
	{"no such repository", ErrNotFound},
	{"remote branch", ErrNotFound},
	{"permission denied", ErrAuth},
	{"authentication failed", ErrAuth},
	{"access denied", ErrAuth},
	{"host key verification failed", ErrAuth},
	{"could not resolve", ErrUnreachable},
	{"connection refused", ErrUnreachable},
	{"timed out", ErrUnreachable},
	{"unreachable", ErrUnreachable},
}

func complaintError(said string) error {
	lower := strings.ToLower(said)
	for _, known := range complaints {
		if strings.Contains(lower, known.words) {
			return fmt.Errorf("%w: %s", known.kind, said)
		}
	}
	return errors.New(said)
}

// ReceivePack pushes. It reads what the other side says to its end, so that
// hooks that run after the push are not cut off.
func (s *pipeSession) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.asked = true
	sendErr := req.Encode(s.in)
	_ = s.in.Close()
	out := demultiplexed(s.out, req.Capabilities, req.Progress)
	report := packp.NewReportStatus()
	if err := report.Decode(out); err != nil {
		return nil, errors.Join(sendErr, s.complaint(err))
	}
	_, _ = io.Copy(io.Discard, out)
	return report, report.Error()
}

// UploadPack fetches without negotiation: the caller has nothing yet.
func (s *pipeSession) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.asked = true
	if err := s.request(req); err != nil {
		return nil, s.complaint(err)
	}
	response := packp.NewUploadPackResponse(req)
	if err := response.Decode(io.NopCloser(s.out)); err != nil {
		return nil, s.complaint(err)
	}
	return response, nil
}

func (s *pipeSession) request(req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return err
	}
	return s.in.Close()
}

// Close ends the session. Without a request the protocol asks for a flush
// packet, so that the other side does not complain.
func (s *pipeSession) Close() error {
	if s.ended {
		return nil
	}
	if !s.asked {
		_, _ = s.in.Write(pktline.FlushPkt)
	}
	_, err := s.finish()
	return err
}

// finish reads on, since a program that cannot write does not end either.
func (s *pipeSession) finish() (said string, err error) {
	s.ended = true
	_ = s.in.Close()
	_, _ = io.Copy(io.Discard, s.out)
	return s.end()
}

func demultiplexed(r io.Reader, capabilities *capability.List, progress sideband.Progress) io.Reader {
	kind, multiplexed := sideband.Sideband64k, capabilities.Supports(capability.Sideband64k)
	if !multiplexed && capabilities.Supports(capability.Sideband) {
		kind, multiplexed = sideband.Sideband, true
	}
	if !multiplexed {
		return r
	}
	demuxer := sideband.NewDemuxer(kind, r)
	demuxer.Progress = progress
	return demuxer
}
