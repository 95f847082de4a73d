package picker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"penstock/infra/shares"
	"penstock/schemas/control"
)

const (
	// firstRetry is how long is waited after the first failure; it doubles.
	firstRetry = 100 * time.Millisecond
	// leastPace is the least time from question to question, whatever the answers:
	// an API that does not wait is not asked all the time.
	leastPace = 200 * time.Millisecond
	// patience is for how long older tables are refused.
	patience = time.Minute
	// grace is how long an answer may take beyond the time for which it is kept back.
	grace = 10 * time.Second
	// maxBody bounds an answer, and maxRefusal what is read of one that is none.
	maxBody    = 16 << 20
	maxRefusal = 4 << 10
	// mostAfter bounds what Retry-After may ask for.
	mostAfter = 30 * time.Second
)

// answer is what a question brought.
type answer struct {
	split   *control.SplitAnswer // nil: what was known is still so
	tag     string
	servers string        // digest of where the servers are
	age     time.Duration // for how long the API has not heard the bus
}

// refusal is an answer that is none.
type refusal struct {
	error
	result string        // in metrics
	after  time.Duration // not before is it to be asked again
}

func (r refusal) Unwrap() error { return r.error }

// follow asks for the split of a component until the picker ends.
func (c *callee) follow() {
	p := c.p
	f := following{callee: c, question: p.o.question(c.link.To)}
	for p.ctx.Err() == nil {
		began := p.o.Clock.Now()
		wait := f.step()
		wait = max(wait, leastPace-p.o.Clock.Now().Sub(began))
		if wait > 0 && p.o.Clock.Sleep(p.ctx, wait) != nil {
			return
		}
	}
}

// following is what is kept from question to question.
type following struct {
	*callee
	question string
	tag      string // of what is known; "": nothing is
	servers  string
	failures int
	older    time.Time // since when older tables are told; zero: they aren't
}

// step asks once, and returns how long to wait before the next question.
func (f *following) step() time.Duration {
	a, err := f.ask()
	if f.p.ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return f.failed(err)
	}
	f.failures = 0
	if a.split == nil {
		f.older = time.Time{}
		f.p.metrics.answers.WithLabelValues(gotSame).Inc()
		f.answered(a, nil)
		if a.servers != f.servers {
			f.tag = "" // the same table, and other servers
		}
		return 0
	}
	return f.take(a)
}

// take brings an answer into force, unless it is an older one.
func (f *following) take(a answer) time.Duration {
	now := f.p.o.Clock.Now()
	anew := !f.older.IsZero() && now.Sub(f.older) >= patience
	err := f.apply(a.split, anew)
	switch {
	case errors.Is(err, shares.ErrOlder):
		if f.older.IsZero() {
			f.older = now
		}
		f.p.metrics.answers.WithLabelValues(gotOlder).Inc()
		f.answered(a, fmt.Errorf("epoch %d: %w", a.split.Epoch, errOlder))
		return f.p.o.Retry // it would be told again at once
	case err != nil:
		return f.failed(refusal{error: fmt.Errorf("%w: %w", ErrAnswer, err), result: gotRubbish})
	}
	f.older, f.tag, f.servers = time.Time{}, a.tag, a.servers
	result := gotTable
	if !a.split.Known {
		result = gotDefault
	}
	f.p.metrics.answers.WithLabelValues(result).Inc()
	f.answered(a, nil)
	return 0
}

// answered notes an answer, and who waits for the first.
func (f *following) answered(a answer, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Answered, f.state.Age, f.state.Err = f.p.o.Clock.Now(), a.age, err
	if !f.told {
		f.told = true
		close(f.first)
	}
}

// failed notes why there is no answer, and returns when to ask again: sooner at
// first, and not all at once.
func (f *following) failed(err error) time.Duration {
	result, after := gotNothing, time.Duration(0)
	var r refusal
	if errors.As(err, &r) {
		result, after = r.result, r.after
	}
	f.p.metrics.answers.WithLabelValues(result).Inc()
	f.mu.Lock()
	f.state.Err = err
	f.mu.Unlock()
	if f.failures == 0 {
		f.p.log.Warn().Err(err).Str("component", f.link.To).Msg("the split can't be asked for: what is known goes on")
	}
	wait := min(f.p.o.Retry, firstRetry<<min(f.failures, 16))
	f.failures++
	wait += time.Duration(float64(wait) * (rand.Float64() - 0.5) / 2) //nolint:gosec // Who asks when is no secret.
	return max(wait, after)
}

// ask asks for the split. What was told is not yet in force.
func (f *following) ask() (answer, error) {
	ctx, cancel := context.WithTimeout(f.p.ctx, f.p.o.Wait+grace)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.question, nil)
	if err != nil {
		return answer{}, fmt.Errorf("question: %w", err)
	}
	if f.tag != "" {
		req.Header.Set("If-None-Match", f.tag)
		if f.servers != "" {
			req.Header.Set(control.HeaderSplitServers, f.servers)
		}
	}
	if f.p.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+f.p.o.Token)
	}
	res, err := f.p.o.Client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("question: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // What was needed of it was read.
	a := answer{tag: res.Header.Get("ETag"), servers: res.Header.Get(control.HeaderSplitServers)}
	if seconds, err := strconv.ParseInt(res.Header.Get(control.HeaderSplitAge), 10, 32); err == nil {
		a.age = time.Duration(seconds) * time.Second
	}
	switch {
	case res.StatusCode == http.StatusNotModified && f.tag != "":
		return a, nil
	case res.StatusCode != http.StatusOK:
		return answer{}, refused(res)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return answer{}, fmt.Errorf("answer: %w", err)
	}
	if a.split, err = f.read(body); err != nil {
		return answer{}, refusal{error: fmt.Errorf("%w: %w", ErrAnswer, err), result: gotRubbish}
	}
	return a, nil
}

// read reads an answer, and whether it is one to what was asked.
func (f *following) read(body []byte) (*control.SplitAnswer, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("an answer of more than %d bytes", maxBody)
	}
	a, err := control.DecodeSplitAnswer(body)
	if err != nil {
		return nil, err
	}
	if got := (shares.Link{From: a.From, FromSite: a.FromSite, To: a.Component}); got != f.link {
		return nil, fmt.Errorf("the answer is about %+.200v", got)
	}
	return a, nil
}

// refused says what another answer than a split says.
func refused(res *http.Response) error {
	r := refusal{result: gotRefusal}
	if seconds, err := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		r.after = min(time.Duration(seconds)*time.Second, mostAfter)
	}
	var told struct {
		Error string `json:"error"`
		Text  string `json:"text"`
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	if err != nil || json.Unmarshal(body, &told) != nil {
		r.error = fmt.Errorf("%w: status %d", ErrAnswer, res.StatusCode)
		return r
	}
	r.error = fmt.Errorf("%w: status %d, %.40q: %.200q", ErrAnswer, res.StatusCode, told.Error, told.Text)
	return r
}
