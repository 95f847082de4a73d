package loads

import "errors"

var (
	// ErrCourse is returned for a course of the load that is none.
	ErrCourse = errors.New("course of the load")
	// ErrRecording is returned where a recording cannot be read, or has no load.
	ErrRecording = errors.New("recording")
)
