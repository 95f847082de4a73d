package topology

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// writeBodies writes the bodies of messages on COMMANDS, a line each, by temporary
// file and rename: in order of their window's end, then of the subjects, which are
// one a kind, then of the stream. Each kind's own are in that order as they are;
// how those of two kinds lie between each other there is chance.
func writeBodies(ctx context.Context, client *bus.Client, path string, subjects ...string) (err error) {
	f, err := os.Create(path + ".part")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = merged(ctx, client, subjects, func(body []byte) error {
		_, _ = w.Write(body) // The error shows at Flush.
		return w.WriteByte('\n')
	})
	err = errors.Join(err, w.Flush(), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("report: %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// strand is what is left to read of one subject.
type strand struct {
	next func() (bus.Msg, error, bool)
	m    bus.Msg
	end  int64 // µs, of its window
	over bool
}

// advance goes on to the next message.
func (s *strand) advance() error {
	m, err, ok := s.next()
	if err != nil || !ok {
		s.over = true
		return err
	}
	var of struct {
		Window control.Window `json:"window"`
	}
	if err := json.Unmarshal(m.Data, &of); err != nil {
		return fmt.Errorf("%s, sequence %d: %w", m.Subject, m.Seq, err)
	}
	s.m, s.end = m, of.Window.End.UnixMicro()
	return nil
}

// merged calls fn for the bodies of all subjects, in order of windows.
func merged(ctx context.Context, client *bus.Client, subjects []string, fn func(body []byte) error) error {
	strands := make([]*strand, len(subjects))
	for i, subj := range subjects {
		next, stop := iter.Pull2(onCommands(ctx, client, subj))
		defer stop()
		strands[i] = &strand{next: next}
		if err := strands[i].advance(); err != nil {
			return err
		}
	}
	for {
		var first *strand
		for _, s := range strands {
			if !s.over && (first == nil || s.end < first.end) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		if err := fn(first.m.Data); err != nil {
			return err
		}
		if err := first.advance(); err != nil {
			return err
		}
	}
}

var errEnough = errors.New("enough was read")

// onCommands are the messages of a subject, in stream order; of a decision in
// parts the first.
func onCommands(ctx context.Context, client *bus.Client, subj string) iter.Seq2[bus.Msg, error] {
	return func(yield func(bus.Msg, error) bool) {
		err := client.Each(ctx, subject.CommandsStream, []string{subj}, 0, func(m bus.Msg) error {
			if !again(m) && !yield(m, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(bus.Msg{}, err)
		}
	}
}
