package admin

import "errors"

var (
	// ErrOptions is returned by New for options that make no server. Nothing is bound.
	ErrOptions = errors.New("unusable options of a coder's admin server")
	// ErrScrubbing is returned by Scrub while another scrub is under way, which goes on.
	ErrScrubbing = errors.New("a scrub is under way")
	// ErrRefused is returned by Client when the server says no; the text says why.
	ErrRefused = errors.New("refused by the coder")
	// ErrCut is returned by Client.Scrub when the answer ends without a report: the
	// coder has ended, and the scrub with it.
	ErrCut = errors.New("the scrub was cut off")
	// ErrFailed is returned by Client.Scrub for a scrub that failed within the coder; the
	// report is of what was done until then.
	ErrFailed = errors.New("the scrub failed")
)
