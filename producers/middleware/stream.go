package middleware

import (
	"sync"

	"google.golang.org/grpc"
)

// countedStream adds up the messages of a stream. One goroutine may send while
// another receives.
type countedStream struct {
	grpc.ServerStream

	mu   sync.Mutex
	call *call
}

// SendMsg counts what was sent.
func (s *countedStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.call.took(m)
	}
	return err
}

// RecvMsg counts what came, and keeps the first message for the rules.
func (s *countedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.call.message == nil {
			s.call.message = m
		}
		s.call.took(m)
	}
	return err
}

// finish records the call. A goroutine that the handler has left behind may still
// be at work on the stream.
func (s *countedStream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call.done()
}
