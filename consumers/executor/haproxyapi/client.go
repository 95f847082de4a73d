package haproxyapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"
)

// mostLine is how long a line of commands may be: HAProxy reads one into a buffer,
// of 16 KB unless it was told otherwise.
const mostLine = 4 << 10

// mostAnswer bounds an answer: some 100,000 servers.
const mostAnswer = 32 << 20

// names of HAProxy's are made of these.
var named = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

// Named says whether a text can be the name of a backend or a server.
func Named(text string) bool { return named.MatchString(text) }

// Address cuts an address of the runtime API: the path of a UNIX socket, or host:port. A
// "unix:" or "tcp:" before it says which. ErrAddress for none.
func Address(text string) (network, address string, err error) {
	network, address = "tcp", text
	if rest, ok := strings.CutPrefix(text, "tcp:"); ok {
		address = rest
	} else if rest, ok := strings.CutPrefix(text, "unix:"); ok || strings.Contains(text, "/") {
		network, address = "unix", rest
	}
	if address == "" {
		return "", "", fmt.Errorf("%w: got %.200q, expected a path or host:port", ErrAddress, text)
	}
	return network, address, nil
}

// Client asks HAProxy. Each question is a connection of its own: HAProxy answers
// one line of commands and closes it, in all versions. It is safe for concurrent use.
type Client struct {
	// Network and Address are as Address returns them.
	Network, Address string
	// Timeout bounds one question and its answer.
	Timeout time.Duration
}

// Ask sends a line of commands and returns the whole answer. ErrUnreachable.
func (c Client) Ask(ctx context.Context, commands ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, c.Network, c.Address)
	if err != nil {
		return "", unreachable(err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, strings.Join(commands, ";")+"\n"); err != nil {
		return "", unreachable(err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, mostAnswer))
	if err != nil {
		return "", unreachable(err)
	}
	// Each command's answer ends with an empty line. One that breaks off, because
	// HAProxy ended meanwhile, says nothing about what was asked.
	if said := string(answer); said == "\n" || strings.HasSuffix(said, "\n\n") {
		return said, nil
	}
	return "", unreachable(io.ErrUnexpectedEOF)
}

func unreachable(err error) error {
	return fmt.Errorf("%w (%w)", ErrUnreachable, err)
}

// Set has HAProxy carry commands out that answer nothing if they succeed. It goes
// on to the end of a line after one that it refuses. ErrRefused, ErrUnreachable.
func (c Client) Set(ctx context.Context, commands ...string) error {
	for len(commands) > 0 {
		n, length := 0, 0
		for n < len(commands) && (n == 0 || length+len(commands[n]) < mostLine) {
			length += len(commands[n]) + 1
			n++
		}
		answer, err := c.Ask(ctx, commands[:n]...)
		if err != nil {
			return err
		}
		if said := strings.TrimSpace(answer); said != "" {
			first, _, _ := strings.Cut(said, "\n")
			return fmt.Errorf("%w: %.200s", ErrRefused, first)
		}
		commands = commands[n:]
	}
	return nil
}
