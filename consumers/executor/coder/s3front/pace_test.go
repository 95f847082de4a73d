package s3front

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/versity/versitygw/s3err"

	"penstock/infra/clock"
)

// client is the other end of a connection on a manual clock: bytes take their time at its
// rate, and what doesn't come by the deadline fails.
type client struct {
	net.Conn
	http.ResponseWriter

	clock *clock.Manual
	rate  int64 // bytes a second
	until time.Time
	total int64
}

func (c *client) SetWriteDeadline(t time.Time) error { c.until = t; return nil }
func (c *client) SetReadDeadline(t time.Time) error  { c.until = t; return nil }

func (c *client) move(n int) (int, error) {
	took := time.Duration(float64(n) / float64(c.rate) * float64(time.Second))
	if left := c.until.Sub(c.clock.Now()); took > left {
		c.clock.Advance(max(left, 0))
		return 0, os.ErrDeadlineExceeded
	}
	c.clock.Advance(took)
	c.total += int64(n)
	return n, nil
}

func (c *client) Write(p []byte) (int, error) { return c.move(len(p)) }
func (c *client) Read(p []byte) (int, error)  { return c.move(len(p)) }

// TestPace: a body that moves at less than the least rate ends once it is behind by
// Options.Idle, in both directions; what we need ourselves doesn't count, and neither does
// what moved fast before.
func TestPace(t *testing.T) {
	t.Parallel()
	const rate, idle = 64 << 10, 30 * time.Second
	for _, way := range []string{"sent", "received"} {
		start := func() (*client, func() error) {
			m := clock.NewManual(time.Unix(1e9, 0))
			c := &client{clock: m}
			buffer := make([]byte, 8<<10)
			p := pace{idle: idle, rate: rate}
			if way == "sent" {
				to := &conn{Conn: c, clock: m, pace: p}
				return c, func() error { _, err := to.Write(buffer); return err }
			}
			body := &rawBody{r: c, control: http.NewResponseController(c), clock: m, pace: p}
			return c, func() error { _, err := body.Read(buffer); return err }
		}
		until := func(c *client, move func() error, most int64) (took time.Duration, err error) {
			began := c.clock.Now()
			for most += c.total; err == nil && c.total < most; {
				err = move()
			}
			return c.clock.Now().Sub(began), err
		}
		slow := func(err error) bool {
			var s3 s3err.APIError
			return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &s3) && s3.Code == tooSlow
		}

		c, move := start()
		c.rate = 2000
		// Each second it falls behind by (1 − 2000/65536) s.
		if took, err := until(c, move, 10<<20); !slow(err) || took < idle || took > idle+2*time.Second {
			t.Errorf("%s at 2 KB/s: %v after %v", way, err, took)
		}
		c, move = start()
		c.rate = rate + 1
		if _, err := until(c, move, 100<<20); err != nil {
			t.Errorf("%s at the least rate: %v", way, err)
		}
		c.rate = rate / 2
		if took, err := until(c, move, 100<<20); !slow(err) || took < 2*idle-time.Second || took > 2*idle+time.Second {
			t.Errorf("%s at half of it: %v after %v", way, err, took)
		}
		c, move = start()
		c.rate = 1 << 30
		if _, err := until(c, move, 1<<30); err != nil {
			t.Errorf("%s fast: %v", way, err)
		}
		c.rate = 2000
		if took, err := until(c, move, 10<<20); !slow(err) || took > idle+2*time.Second {
			t.Errorf("%s at 2 KB/s, fast before: %v after %v", way, err, took)
		}
		c, move = start()
		c.rate = 1 << 20
		for range 100 {
			c.clock.Advance(time.Hour)
			if err := move(); err != nil {
				t.Fatalf("%s, and it is we who are slow: %v", way, err)
			}
		}
	}
}

// TestPaceOfAnswers: a client that was slow with an answer has all of its time for the
// next.
func TestPaceOfAnswers(t *testing.T) {
	t.Parallel()
	m := clock.NewManual(time.Unix(1e9, 0))
	c := &conn{Conn: &client{clock: m, rate: 1 << 10}, clock: m, pace: pace{idle: 10 * time.Second, rate: 1 << 20}}
	ctx := withConn(context.Background(), c)
	for range 20 {
		restart(ctx)
		if n, err := c.Write(make([]byte, 9<<10)); err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := c.Write(make([]byte, 9<<10)); codeOf(err) != tooSlow {
		t.Error(err)
	}
	restart(context.Background())
}
