package dynamic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// Server is a program that answers the calls of one or several tools until Close. It gets a
// line of JSON for each call and writes one.
type Server struct {
	Program Program
	// Log gets what the program writes to standard error, and lines that answer nothing, from
	// several goroutines.
	Log io.Writer
	// Ended is told why the program ended by itself, and gives why it is not to be started
	// anew; nil lets it be.
	Ended func(why string) error

	mu      sync.Mutex
	running *served // nil where it is to be started
	lost    error   // why it is not started any more
}

// request is the line of a call.
type request struct {
	CallID    string          `json:"call_id"`
	TurnID    string          `json:"turn_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Start starts the program.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start()
}

// Ready waits until the program says that it is ready, at most until a time: not all say it. One
// that has ended by then can't be used.
func (s *Server) Ready(ctx context.Context, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.running.ready:
	case <-s.running.mute:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.running.isOver() {
		return errors.New("it " + s.running.how())
	}
	return nil
}

func (s *Server) start() (err error) {
	s.running, err = serve(s.Program, s.Log)
	return err
}

// Tool makes a tool whose calls the program answers. A call mutates: what the program does,
// nobody knows.
func (s *Server) Tool(spec tools.Spec, timeout time.Duration) tools.Tool {
	return tools.Tool{Spec: spec, Foreign: true, Mutates: true, Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.call(ctx, spec.Name, call, timeout)
	}}
}

func (s *Server) call(ctx context.Context, name string, call tools.Call, timeout time.Duration) (tools.Result, error) {
	if words := s.live(name); words != "" {
		return tools.Refuse(words), nil
	}
	line, err := json.Marshal(request{call.ID, strconv.Itoa(call.Turn), name, json.RawMessage(call.Input)})
	if err != nil {
		return tools.Result{}, fmt.Errorf("write the call for %s: %w", name, err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got, err := s.running.ask(limited, call.ID, append(line, '\n'))
	switch {
	case err == nil:
		return got.result(limited, name), nil
	case ctx.Err() != nil:
		s.stop() // it would go on with what nobody waits for
		return tools.Result{}, ctx.Err()
	case limited.Err() != nil:
		s.stop()
		words := fmt.Sprintf("%s took longer than %s. Its process was ended, and is started anew for the next call; what it knew is lost.", name, timeout)
		return tools.Result{Output: words, Failed: true, Detail: map[string]any{"timed_out": true}}, nil
	}
	return tools.Refuse(s.ended(name, "while the call ran. The call is not made again: look at what it has done")), nil
}

// live makes sure that the program runs; words are why it does not.
func (s *Server) live(name string) (words string) {
	if s.running != nil && s.running.isOver() {
		if words := s.ended(name, "before the call"); s.lost != nil {
			return words
		}
	}
	if s.lost != nil {
		return fmt.Sprintf("%s can't be called: %v", name, s.lost)
	}
	if s.running != nil {
		return ""
	}
	if err := s.start(); err != nil {
		s.lost = s.tell(fmt.Sprintf("could not be started anew: %v", err))
		return fmt.Sprintf("%s can't be called: its process could not be started anew: %v", name, err)
	}
	return ""
}

// ended takes note of a program that ended by itself, and gives words for the model.
func (s *Server) ended(name, when string) string {
	how := s.running.how()
	s.stop()
	s.lost = s.tell(how)
	words := fmt.Sprintf("%s failed: its process %s %s.", name, how, when)
	if s.lost != nil {
		return words + " It is not started again."
	}
	return words + " It is started anew for the next call; what it knew is lost."
}

func (s *Server) tell(why string) error {
	if s.Ended == nil {
		return nil
	}
	return s.Ended(why)
}

// stop ends the program and waits for it.
func (s *Server) stop() {
	if s.running != nil {
		s.running.stop()
		s.running = nil
	}
}

// Close ends the program. No call may be under way.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}
