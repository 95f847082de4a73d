package haproxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"penstock/consumers/executor/router"
)

// mostLine is how long a line of commands may be: HAProxy reads one into a buffer,
// of 16 KB unless it was told otherwise.
const mostLine = 4 << 10

// mostAnswer bounds an answer: some 100,000 servers.
const mostAnswer = 32 << 20

// client asks HAProxy. Each question is a connection of its own: HAProxy answers
// one line of commands and closes it, in all versions.
type client struct {
	network, address string
	timeout          time.Duration
}

// ask sends a line of commands and returns the whole answer. ErrUnreachable.
func (c *client) ask(ctx context.Context, commands ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, c.network, c.address)
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
	return fmt.Errorf("%w (%w)", router.ErrUnreachable, err)
}

// set has HAProxy carry commands out that answer nothing if they succeed. It goes
// on to the end of a line after one that it refuses. ErrRefused, ErrUnreachable.
func (c *client) set(ctx context.Context, commands []string) error {
	for len(commands) > 0 {
		n, length := 0, 0
		for n < len(commands) && (n == 0 || length+len(commands[n]) < mostLine) {
			length += len(commands[n]) + 1
			n++
		}
		answer, err := c.ask(ctx, commands[:n]...)
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
